/** What the page shows: the models, up to two panes, and the head that is looked at in all views. */

import * as link from './link'
import type { Look, Shown } from './look'
import { Pane } from './pane.svelte'
import { KINDS, type Asked, type Kind, type Merge, type Model, type State } from './types'

export const VIEWS = ['heads', 'equation', 'writing', 'positions', 'words', 'dictionary', 'compare', 'training'] as const
export type View = (typeof VIEWS)[number]

class Page {
  state = $state.raw<State | null>(null)
  view = $state<View>('heads')
  kind = $state<Kind>('encoder')
  layer = $state<number | null>(1)
  head = $state(1)
  merge = $state<Merge>('head')
  whole = $state(false)
  /** The row that stays lit, by its place among the rows. */
  query = $state<number | null>(null)
  panes = $state<Pane[]>([])

  get first(): Pane {
    return this.panes[0]!
  }

  get models(): Model[] {
    return this.state?.models ?? []
  }

  get shown(): Shown {
    return { kind: this.kind, merge: this.merge, layer: this.layer, head: this.head }
  }

  /** Show one head. */
  choose(kind: Kind, layer: number, head: number): void {
    if (kind !== this.kind) this.query = null
    this.kind = kind
    this.layer = layer
    this.head = head
    this.merge = 'head'
  }

  /** Begin with what the server has, at the place an address names. */
  open(state: State, hash: string): void {
    const at = link.read(hash)
    this.state = state
    const wanted = at.asked.length ? at.asked : [{}]
    this.#begin(state, at, wanted.map((asked, number) => this.pane(asked, number)))
  }

  #begin(state: State, at: ReturnType<typeof link.read>, panes: Pane[]): void {
    this.state = state
    this.panes = panes
    if ((VIEWS as readonly string[]).includes(at.view ?? '')) this.view = at.view as View
    const kinds = this.first.model.kinds
    const there = KINDS.filter((kind) => kind in kinds)
    this.kind = at.kind && there.includes(at.kind) ? at.kind : there.includes('cross') ? 'cross' : (there[0] ?? 'encoder')
    const [layers, heads] = kinds[this.kind] ?? [1, 1]
    this.merge = at.merge === 'rollout' && this.kind === 'cross' ? 'mean' : (at.merge ?? 'head')
    this.layer = at.layer && at.layer <= layers ? at.layer : this.merge === 'head' ? layers : null
    this.head = Math.min(at.head ?? 1, heads)
    this.whole = at.whole ?? false
    this.query = at.query ?? null
  }

  /** Begin with one pass that is all there is: nothing can be asked. */
  alone(state: State, look: Look, hash: string): void {
    const pane = new Pane(state.models[0]!)
    pane.live = false
    pane.look = look
    this.#begin(state, link.read(hash), [pane])
  }

  pane(asked: Partial<Asked>, number = 0): Pane {
    const models = this.models
    const model = models[asked.model ?? 0] ?? models[0]!
    const pane = new Pane(model)
    pane.snapshot = model.snapshots.includes(asked.snapshot ?? '') ? asked.snapshot! : null
    pane.text = asked.text ?? model.examples[number % Math.max(1, model.examples.length)] ?? ''
    pane.target = asked.target ?? null
    pane.image = asked.image ?? null
    pane.changes = link.fitting(asked.changes ?? link.unchanged(), model)
    pane.refresh(0)
    return pane
  }

  /** Keep to heads that the pane's model has. */
  fit(): void {
    const kinds = this.first.model.kinds
    const there = KINDS.filter((kind) => kind in kinds)
    if (!there.length) return
    if (!there.includes(this.kind)) this.kind = there.at(-1)!
    const [layers, heads] = kinds[this.kind]!
    if (this.layer !== null && this.layer > layers) this.layer = layers
    if (this.head > heads) this.head = heads
    if (this.merge === 'head' && this.layer === null) this.layer = layers
  }

  get link(): string {
    const asked = this.panes.slice(0, this.view === 'compare' ? 2 : 1).map((pane) => ({
      model: pane.model.number,
      snapshot: pane.snapshot,
      text: pane.text,
      target: pane.target,
      branch: null,
      image: pane.image,
      changes: pane.changes,
    }))
    const { view, kind, layer, head, merge, whole, query } = this
    return link.written({ view, kind, layer, head, merge, whole, query, asked })
  }
}

export const page = new Page()
