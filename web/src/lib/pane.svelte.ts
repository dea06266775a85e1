/** One model before one text: what is asked, what came back, and what is under way. */

import { aborted, ask, GONE, Refused, sentence, write } from './api'
import { goneOn, MOST, spoken, within } from './continued'
import { Latest } from './debounce'
import { held } from './held.svelte'
import { changed, fitting, unchanged } from './link'
import { Look, type Shown } from './look'
import type { Asked, Between, Changes, Kind, LookValues, Model, WrittenToken } from './types'

/** Weights of heads that were asked for one by one, kept while the pass is the same. */
const KEPT = 24

/** Models whose weights have been read, each with the name of its weights: the first question to one takes longer. */
const opened = new Set<string>()

export class Pane {
  model = $state<Model>(null!)
  snapshot = $state<string | null>(null)
  text = $state('')
  /** Which part of a text that is longer than the model reads, from 1; null: the one that suits. */
  part = $state<number | null>(null)
  /** A translation to be taken as it stands; null: the model's own. */
  target = $state<string | null>(null)
  /** The languages of a translator of several; null: its usual ones. */
  between = $state<Between | null>(null)
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
  /** What was written before, forced upon the changed model: the same tokens, of which each is now more or less probable. */
  forced = $state.raw<Look | null>(null)
  /** What a language model went on with, before and now. */
  gone = $state.raw<readonly [WrittenToken[], WrittenToken[]] | null>(null)

  /** Another number whenever all must be asked anew, though nothing was changed: there are other weights. */
  turn = $state(0)

  /** Told of every pass before it is shown, with the one before it. */
  looked: ((before: Look | null, after: Look) => void) | null = null

  /** Whether there is a server to ask. */
  live = true

  /** The use of attention of which the next pass brings the head to begin with. */
  begins: Kind | null = null

  #latest = new Latest()
  #branch: number[] | null = null
  #heads = new Map<string, Promise<Float32Array>>()
  #of: Asked | null = null
  #last: Look | null = null
  #entire: Asked | null = null
  #known = $state(false)

  /** Whose weights it looks at. */
  get of(): string {
    return JSON.stringify([this.model.number, this.snapshot])
  }

  constructor(model: Model) {
    this.model = model
  }

  /** The pass that `look` shows, for the other questions about it: of a long text the part that is seen. */
  get asked(): Asked {
    return this.#of ?? this.#now()
  }

  /** The same with the whole text, and which part of it is seen: for what is taken away from the page. */
  get entire(): Asked {
    return this.#entire ?? this.#now()
  }

  #now(): Asked {
    return $state.snapshot({
      model: this.model.number,
      snapshot: this.snapshot,
      text: this.text,
      target: this.target?.trim() ?? null,
      branch: this.target === null ? this.#branch : null,
      image: this.image,
      changes: this.changes,
      window: this.part,
      between: this.between,
    }) as Asked
  }

  /** Nothing is there to be read. */
  get silent(): boolean {
    return this.model.reads === 'image' ? this.image === null : !this.text.trim()
  }

  /** What is waited for while there is nothing to look at yet; null: nothing is. */
  get awaits(): 'loading' | 'reading' | null {
    if (this.look || !this.busy) return null
    return this.tokens.length || this.#known ? 'reading' : 'loading'
  }

  get streams(): boolean {
    return this.model.writes === 'text' || this.model.writes === 'continuation'
  }

  /** Why there is nothing to look at yet: a training has no weights to show. */
  get waits(): string | null {
    return this.model.ready || this.snapshot !== null ? null : sentence(this.model.why ?? '')
  }

  /** Whether the weights that are looked at are no longer those of the folder, or the server has them no more. */
  get outdated(): boolean {
    return !this.busy && held.outdated({ model: this.model.number, snapshot: this.snapshot }, this.model.weights)
  }

  /** What the server says of the model now; what did not change is left alone. */
  told(model: Model): void {
    const came = model.ready && !this.model.ready
    for (const name of Object.keys(model) as (keyof Model)[])
      if (JSON.stringify(this.model[name]) !== JSON.stringify(model[name])) Object.assign(this.model, { [name]: model[name] })
    if (!came) return
    this.text ||= model.examples[0] ?? ''
    if (this.snapshot === null) this.again()
  }

  /** Be as is asked, by an address or the history; what that leaves open stays. Returns whether that is another pass. */
  become(asked: Partial<Asked>): boolean {
    const snapshot = this.model.snapshots.includes(asked.snapshot ?? '') ? asked.snapshot! : null
    const changes = fitting(asked.changes ?? unchanged(), this.model)
    const wanted = { snapshot, text: asked.text ?? this.text, target: asked.target ?? null, image: asked.image ?? this.image, changes, part: asked.window ?? null, between: asked.between ?? null }
    const { text, target, image, part, between } = this
    if (JSON.stringify(wanted) === JSON.stringify({ snapshot: this.snapshot, text, target, image, changes: this.changes, part, between })) return false
    Object.assign(this, wanted)
    this.refresh(0)
    return true
  }

  /** Look at another part of the text; what was forced was of the one before. */
  move(part: number): void {
    this.part = part
    this.target = null
    this.refresh(60)
  }

  /** Translate from another language, or into one; what was forced was in the one before. */
  translate(side: number, code: string): void {
    this.between = [side ? (this.between?.[0] ?? null) : code, side ? code : (this.between?.[1] ?? null)]
    this.target = null
    this.refresh(0)
  }

  /** Have the next pass bring the head to begin with. */
  begin(kind: Kind): void {
    if (!this.live) return
    this.begins = kind
    if (this.look) this.refresh(0)
  }

  /** Look again, with the weights there are now. */
  again(): void {
    held.release(this.model.number, this.snapshot)
    this.turn += 1
    this.refresh(0)
  }

  /** Show nothing until there is an answer. */
  clear(): void {
    this.look = this.before = this.forced = null
  }

  /** The server is there again. */
  returned(): void {
    this.turn += 1
    if (this.problem === GONE) this.refresh(0)
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
    if (this.silent || this.waits !== null) {
      this.problem = null
      this.clear()
      this.tokens = []
      return
    }
    this.#known = opened.has(this.of)
    this.busy = true
    try {
      this.#branch = null
      if (this.streams && this.target === null) await this.#write(signal)
      const asked = this.#now()
      const look = new Look(await ask<LookValues>('look', { ...asked, ...(this.begins ? { opening: this.begins } : {}) }, signal))
      const { window: part, target_window: forcedPart, weights } = look.values
      const of: Asked = { ...asked, text: part?.text ?? asked.text, target: forcedPart?.text ?? asked.target, window: null, weights }
      const plain: Asked = { ...of, changes: unchanged() }
      const other = changed(asked.changes)
      const gone = other && this.model.writes === 'continuation' ? ([spoken(await goneOn(plain, signal)), spoken(this.tokens)] as const) : null
      const read = gone && within(gone[0], look.values, this.model.max_tokens)
      const went = read?.length ? read.map(({ id }) => id) : null
      const before = other ? new Look(await ask<LookValues>('look', { ...plain, branch: went }, signal)) : null
      const branch = went ?? before?.values.branch
      const same = !branch || asked.target !== null || String(branch) === String(look.values.branch)
      const forced = before && !same ? new Look(await ask<LookValues>('look', { ...of, branch }, signal)) : before && look
      this.#heads.clear()
      this.#of = of
      this.#entire = { ...asked, window: part?.number ?? null, weights }
      if (this.part !== null) this.part = part?.number ?? null
      this.begins = null
      opened.add(this.of)
      this.looked?.(this.#last, look)
      this.look = this.#last = look
      this.before = before
      this.forced = forced
      this.gone = gone
      this.problem = null
    } catch (error) {
      if (aborted(error)) return
      this.clear()
      this.problem = error instanceof Refused ? error.message : String(error)
    }
    this.busy = false
  }

  async #write(signal: AbortSignal): Promise<void> {
    this.tokens = []
    this.writing = true
    try {
      const most = this.model.writes === 'continuation' ? { most: MOST } : {}
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
    return this.#ask('head', { kind, merge, layer, head })
  }

  /** `weight_LHK`: what every head gives from one token or, on average, from several. */
  async row(kind: Kind, places: number[], look = this.look!): Promise<Float32Array> {
    return look.row(kind, places) ?? this.#ask('row', { kind, places })
  }

  #ask(question: string, given: object): Promise<Float32Array> {
    const name = JSON.stringify([question, given])
    let found = this.#heads.get(name)
    if (!found) {
      found = ask(question, { ...this.asked, ...given }).then((got) => got.arrays.weight!.data as Float32Array)
      found.catch(() => this.#heads.delete(name))
      this.#heads.set(name, found)
      if (this.#heads.size > KEPT) this.#heads.delete(this.#heads.keys().next().value!)
    }
    return found
  }
}
