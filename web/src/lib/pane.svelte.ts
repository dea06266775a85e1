/** One model before one text: what is asked, what came back, and what is under way. */

import { aborted, ask, Refused, write } from './api'
import { Latest } from './debounce'
import { changed, unchanged } from './link'
import { Look, type Shown } from './look'
import type { Asked, Changes, LookValues, Model, WrittenToken } from './types'

/** Weights of heads that were asked for one by one, kept while the pass is the same. */
const KEPT = 24

export class Pane {
  model = $state<Model>(null!)
  snapshot = $state<string | null>(null)
  text = $state('')
  /** A translation to be taken as it stands; null: the model's own. */
  target = $state<string | null>(null)
  image = $state<Asked['image']>(null)
  changes = $state<Changes>(unchanged())
  /** The model's own writing, token by token; they come while it writes. */
  tokens = $state<WrittenToken[]>([])
  writing = $state(false)
  busy = $state(false)
  problem = $state<string | null>(null)
  /** A new object for every pass: what views depend on. */
  look = $state.raw<Look | null>(null)
  /** Of the same text with nothing taken away, while something is: to see what changes. */
  before = $state.raw<Look | null>(null)

  /** Whether there is a server to ask. */
  live = true

  #latest = new Latest()
  #branch: number[] | null = null
  #heads = new Map<string, Promise<Float32Array>>()
  #of: Asked | null = null

  constructor(model: Model) {
    this.model = model
  }

  /** The pass that `look` shows, for the other questions about it. */
  get asked(): Asked {
    return this.#of ?? this.#now()
  }

  #now(): Asked {
    return $state.snapshot({
      model: this.model.number,
      snapshot: this.snapshot,
      text: this.text,
      target: this.target,
      branch: this.target === null ? this.#branch : null,
      image: this.image,
      changes: this.changes,
    }) as Asked
  }

  get streams(): boolean {
    return this.model.writes === 'text' || this.model.writes === 'continuation'
  }

  /** Something was changed: look again, in a moment. */
  refresh(wait?: number): void {
    this.#latest.run((signal) => this.#pass(signal), wait)
  }

  stop(): void {
    this.#latest.stop()
  }

  async #pass(signal: AbortSignal): Promise<void> {
    this.busy = false
    if (!this.model.ready) {
      this.problem = this.model.why
      return
    }
    if (this.model.reads === 'image' ? this.image === null : !this.text.trim()) {
      this.problem = null
      this.look = this.before = null
      this.tokens = []
      return
    }
    this.busy = true
    try {
      this.#branch = null
      if (this.streams && this.target === null) await this.#write(signal)
      const asked = this.#now()
      const look = new Look(await ask<LookValues>('look', asked, signal))
      const plain: Asked = { ...asked, changes: unchanged() }
      const before = changed(asked.changes) ? new Look(await ask<LookValues>('look', { ...plain, branch: null }, signal)) : null
      this.#heads.clear()
      this.#of = asked
      this.look = look
      this.before = before
      this.problem = null
    } catch (error) {
      if (aborted(error)) return
      this.look = this.before = null
      this.problem = error instanceof Refused ? error.message : String(error)
    }
    this.busy = false
  }

  async #write(signal: AbortSignal): Promise<void> {
    this.tokens = []
    this.writing = true
    try {
      const most = this.model.writes === 'continuation' ? { most: 40 } : {}
      await write({ ...this.#now(), ...most }, (token) => this.tokens.push(token), signal)
      if (this.model.writes === 'text') this.#branch = this.tokens.map((token) => token.id)
    } finally {
      this.writing = false
    }
  }

  /** `weight_QK` of a head or of several merged, of the pass that is shown. */
  async weights(shown: Shown, look = this.look!): Promise<Float32Array> {
    const there = look.weights(shown)
    if (there) return there
    const { kind, merge, layer } = shown
    const head = merge === 'head' ? shown.head : null
    const name = JSON.stringify([kind, merge, layer, head])
    let found = this.#heads.get(name)
    if (!found) {
      found = ask('head', { ...this.asked, kind, merge, layer, head }).then((got) => got.arrays.weight!.data as Float32Array)
      found.catch(() => this.#heads.delete(name))
      this.#heads.set(name, found)
      if (this.#heads.size > KEPT) this.#heads.delete(this.#heads.keys().next().value!)
    }
    return found
  }
}
