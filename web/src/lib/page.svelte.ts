/** What the page shows: the models, up to two panes, and the head that is looked at in all views. */

import { classroom } from './classroom.svelte'
import { followed } from './comparison'
import { held } from './held.svelte'
import * as link from './link'
import type { Look, Shown } from './look'
import { Pane } from './pane.svelte'
import { KINDS, within, type Asked, type Kind, type Merge, type Model, type State } from './types'
import { isView, nearest, type View } from './views'

type Given = ReturnType<typeof link.read>

class Page {
  state = $state.raw<State | null>(null)
  view = $state<View>('heads')
  kind = $state<Kind>('encoder')
  layer = $state<number | null>(1)
  head = $state(1)
  merge = $state<Merge>('head')
  whole = $state(false)
  /** How the head is drawn; null: as suits its size. */
  drawn = $state<link.Drawn | null>(null)
  order = $state<link.Order>('place')
  /** What is compared; null: what the two panes are. */
  beside = $state<link.Beside | null>(null)
  /** Of Figure 1 the box that is open, as an address names it; null: the first that attends. */
  box = $state<string | null>(null)
  /** Of Without the idea that is looked at; null: the first. */
  idea = $state<string | null>(null)
  /** Nobody chose the head: the view of heads begins with one that has something to show. */
  free = $state(false)
  /** Of the guided walk, from 1. */
  step = $state(1)
  /** Its two sentences have changed places. */
  exchanged = $state(false)
  panes = $state<Pane[]>([])
  /** A shipped model stands in for the first one, which has no weights yet. */
  standsIn = $state(false)
  /** The server was asked and did not answer. */
  away = $state(false)

  #query = $state<number | null>(null)
  /** The pass of which the kept row is; null: the next one. */
  #keptIn: Look | null = null

  /** Where it began, for a model of which nothing was known then. */
  #begun: Given = { asked: [] }

  /** The view that was asked for while the model had nothing for it yet. */
  #wanted: View | null = null

  /** The row that stays lit, by its place among the rows. */
  get query(): number | null {
    return this.#query
  }

  set query(row: number | null) {
    this.#query = row
    this.#keptIn = this.panes[0]?.look ?? null
  }

  get first(): Pane {
    return this.panes[0]!
  }

  get models(): Model[] {
    return this.state?.models ?? []
  }

  get shown(): Shown {
    return { kind: this.kind, merge: this.merge, layer: this.layer, head: this.head }
  }

  /** Whether something will be otherwise without the reader's doing. */
  get waits(): boolean {
    return this.models.some(({ ready, running }) => running || !ready)
  }

  /** Panes that show weights of which there are newer ones by now. */
  get outdated(): Pane[] {
    return this.panes.filter((pane) => pane.outdated)
  }

  /** Look again wherever there are newer weights; a pane that is still asking for the older ones too. */
  again(): void {
    const outdated = this.outdated.map(({ of }) => of)
    for (const pane of this.panes) {
      if (!outdated.includes(pane.of)) continue
      pane.again()
      if (pane !== this.first) pane.clear() // never is one of the older beside one of the newer
    }
  }

  /** Keep the same word in another pass, or none where it is gone. */
  #follow(before: Look | null, after: Look): void {
    const { kind, whole } = this
    const row = this.#query
    if (row !== null && before && this.#keptIn === before && kind in before.values.kinds) {
      const rows = (look: Look) => look.labels(look.sides(kind).queries, whole).map(({ name }) => name)
      this.#query = kind in after.values.kinds ? followed(row, rows(before), rows(after)) : null
    }
    this.#keptIn = after
  }

  /** Show one head. */
  choose(kind: Kind, layer: number, head: number): void {
    this.free = false
    if (kind !== this.kind) this.query = null
    this.kind = kind
    this.layer = layer
    this.head = head
    this.merge = 'head'
  }

  /** Begin with what the server has, at the place an address or the history names; where neither does, with the walk if there is one, or comes. */
  open(state: State, at: Given, fresh = false): void {
    if (fresh) at = { ...at, view: 'walk' }
    classroom.on = at.classroom ?? false
    const other = fresh && !state.models[0]!.ready ? state.models.findIndex(({ shipped, ready }) => shipped && ready) : -1
    this.standsIn = other > 0
    this.state = state
    this.#begun = at
    const given = at.asked.length ? at.asked : [{}]
    const wanted: Partial<Asked>[] = this.standsIn ? [{ model: other }] : given
    this.panes = wanted.map((asked, number) => this.pane(asked, number))
    this.#at(at)
  }

  /** Be at another place; what it leaves open stays as it is. */
  go(at: Given): void {
    classroom.on = at.classroom ?? classroom.on
    const wanted = at.asked.length ? at.asked : [{}]
    let settled = false
    wanted.forEach((asked, number) => {
      const pane = this.panes[number]
      if (pane?.model.number === (asked.model ?? 0)) {
        const becomes = pane.become(asked)
        if (number === 0) settled = !becomes
        return
      }
      pane?.stop()
      this.panes[number] = this.pane(asked, number)
    })
    this.#at(at)
    if (!settled) this.#keptIn = null // it is a row of the pass to come
  }

  #at(at: Given): void {
    this.#wanted = null
    if (isView(at.view)) this.view = at.view
    this.settle()
    const kinds = this.first.model.kinds
    const there = KINDS.filter((kind) => kind in kinds)
    this.kind = at.kind && there.includes(at.kind) ? at.kind : there.includes('cross') ? 'cross' : (there[0] ?? 'encoder')
    const [layers, heads] = kinds[this.kind] ?? [1, 1]
    this.merge = at.merge === 'rollout' && !within(this.kind) ? 'mean' : (at.merge ?? 'head')
    this.layer = at.layer && at.layer <= layers ? at.layer : this.merge === 'head' ? layers : null
    this.head = Math.min(at.head ?? 1, heads)
    this.free = (this.view === 'heads' || this.view === 'walk') && !at.layer && (at.head ?? 1) === 1 && this.merge === 'head'
    if (this.free) this.first.begin(this.kind)
    this.whole = at.whole ?? false
    this.query = at.query ?? null
    this.drawn = at.drawn ?? null
    this.order = at.order ?? 'place'
    this.beside = at.beside ?? null
    this.box = at.box ?? null
    this.idea = at.idea ?? null
    if (at.step || at.view === 'walk') [this.step, this.exchanged] = [at.step ?? 1, at.exchanged ?? false]
  }

  /** Begin with one pass that is all there is: nothing can be asked. */
  alone(state: State, look: Look, asked: Partial<Asked>, at: Partial<link.Place>): void {
    const pane = new Pane(state.models[0]!)
    pane.live = false
    Object.assign(pane, { snapshot: asked.snapshot ?? null, target: asked.target ?? null, changes: asked.changes ?? link.unchanged() })
    pane.look = look
    this.state = state
    this.panes = [pane]
    this.#at({ ...at, asked: [] })
  }

  /** What the server says now. What is new comes by itself; what the reader did stays. */
  told(state: State): void {
    if (JSON.stringify(state) !== JSON.stringify(this.state)) this.state = state
    const begins = this.panes.map((pane, at) => {
      const model = state.models[pane.model.number]
      if (model && same(model, pane.model)) {
        pane.told(model)
        return false
      }
      pane.stop()
      held.release(pane.model.number)
      this.panes[at] = this.pane({ model: model?.number ?? 0, ...(pane.text ? { text: pane.text } : {}) }, at)
      return at === 0
    })
    if (this.standsIn && state.models[0]!.ready) this.model(0)
    else if (begins[0]) this.#at({ ...this.#begun, view: this.#wanted ?? this.view })
    else this.settle()
  }

  /** The server is there again, after it was not. */
  returned(): void {
    this.away = false
    this.panes.forEach((pane) => pane.returned())
  }

  pane(asked: Partial<Asked>, number = 0): Pane {
    const models = this.models
    const model = models[asked.model ?? 0] ?? models[0]!
    const pane = new Pane(model)
    pane.looked = (before, after) => {
      if (pane === this.first) this.#follow(before, after)
    }
    pane.snapshot = model.snapshots.includes(asked.snapshot ?? '') ? asked.snapshot! : null
    pane.text = asked.text ?? model.examples[number % Math.max(1, model.examples.length)] ?? ''
    pane.part = asked.window ?? null
    pane.target = asked.target ?? null
    pane.between = model.languages ? (asked.between ?? null) : null
    pane.image = asked.image ?? null
    pane.changes = link.fitting(asked.changes ?? link.unchanged(), model)
    pane.refresh(0)
    return pane
  }

  /** Look at another model. */
  model(number: number): void {
    this.standsIn = false
    this.first.stop()
    this.panes[0] = this.pane({ model: number })
    this.fit()
    this.query = null
    this.beside = this.box = this.idea = null
    this.settle()
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

  /** Keep to a view that the pane's model has; the one that was wanted comes as soon as it has that. */
  settle(): void {
    const wanted = this.#wanted ?? this.view
    const view = nearest(wanted, this.first.model)
    this.#wanted = view === wanted ? null : wanted
    if (view !== this.view) this.view = view
  }

  show(view: View): void {
    this.#wanted = null
    this.view = view
  }

  get place(): link.Place {
    const asked = this.panes.slice(0, this.view === 'compare' ? 2 : 1).map((pane) => ({
      model: pane.model.number,
      snapshot: pane.snapshot,
      text: pane.text,
      target: pane.target,
      branch: null,
      image: $state.snapshot(pane.image) as Asked['image'],
      changes: $state.snapshot(pane.changes),
      ...(pane.part === null ? {} : { window: pane.part }),
      ...(pane.between === null ? {} : { between: $state.snapshot(pane.between) }),
    }))
    const { view, kind, layer, head, merge, whole, query, drawn, order, beside, box, idea, step, exchanged } = this
    return { view, kind, layer, head, merge, whole, query, drawn, order, beside, box, idea, step, exchanged, classroom: classroom.on, asked }
  }

  get link(): string {
    return link.written(this.place)
  }

  /** The same model before the same text, as it is: where one begins. */
  get beginning(): string {
    const { place } = this
    const asked = place.asked.slice(0, 1).map((one) => ({ ...one, snapshot: null, target: null, changes: link.unchanged(), window: null }))
    return link.written({ ...place, view: nearest('walk', this.first.model), kind: null, layer: null, head: 1, merge: 'head', whole: false, query: null, drawn: null, order: 'place', beside: null, box: null, step: 1, exchanged: false, asked })
  }
}

/** Whether it is the same model, of which a training may know more by now. */
function same(one: Model, other: Model): boolean {
  const told = ({ folder, task, family, kinds, reads, writes }: Model) => JSON.stringify([folder, task, family, kinds, reads, writes])
  return told(one) === told(other)
}

export const page = new Page()
