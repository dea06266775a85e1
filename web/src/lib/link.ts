/** What the page shows, as an address: behind #, so that it never leaves the machine. */

import { isKind, type Asked, type Changes, type Kind, type Merge, type Model } from './types'

/** How a head may be drawn, how heads may be ordered, and what may be beside one another. */
export const DRAWN = ['lines', 'text', 'matrix'] as const
export const ORDERS = ['place', 'looks', 'needs', 'entropy', 'distance', 'special'] as const
export const BESIDE = ['sentences', 'checkpoints', 'models', 'changes', 'gradient'] as const
export type Drawn = (typeof DRAWN)[number]
export type Order = (typeof ORDERS)[number]
export type Beside = (typeof BESIDE)[number]

export interface Place {
  view: string
  kind: Kind | null
  layer: number | null
  head: number
  merge: Merge
  whole: boolean
  query: number | null
  /** Nothing: as suits the length of the text. */
  drawn?: Drawn | null
  order?: Order
  beside?: Beside | null
  /** Of Figure 1 the box that is open: stack, layer and part. */
  box?: string | null
  /** Of Without the idea that is taken out. */
  idea?: string | null
  /** Of the guided walk, from 1. */
  step?: number
  /** Its two sentences have changed places. */
  exchanged?: boolean
  /** Shown to a class. */
  classroom?: boolean
  asked: Asked[]
}

/** Characters of a text that an address has room for. */
export const ROOM = 4000

const WHOLE: Changes = { off: [], positions: true, scaling: true, mask: true }

export function unchanged(): Changes {
  return structuredClone(WHOLE)
}

export function changed(changes: Changes): boolean {
  return changes.off.length > 0 || !changes.positions || !changes.scaling || !changes.mask
}

/** What of it a model has to lose. */
export function fitting(changes: Changes, model: Pick<Model, 'kinds' | 'positions' | 'divisor' | 'masked'>): Changes {
  return {
    off: changes.off.filter(([kind, layer, head]) => {
      const [layers, heads] = model.kinds[kind] ?? [0, 0]
      return layer >= 1 && layer <= layers && head >= 1 && head <= heads
    }),
    positions: changes.positions || !model.positions,
    scaling: changes.scaling || model.divisor === 1,
    mask: changes.mask || !model.masked.length,
  }
}

export function written(place: Place): string {
  const found = new URLSearchParams()
  found.set('view', place.view)
  if (place.kind) found.set('kind', place.kind)
  if (place.layer !== null) found.set('layer', String(place.layer))
  if (place.merge !== 'head') found.set('merge', place.merge)
  else found.set('head', String(place.head))
  if (place.whole) found.set('words', '1')
  if (place.query !== null) found.set('token', String(place.query))
  if (place.drawn) found.set('drawn', place.drawn)
  if (place.order && place.order !== 'place') found.set('order', place.order)
  if (place.step && place.step > 1 && place.view === 'walk') found.set('step', String(place.step))
  if (place.exchanged && place.view === 'walk') found.set('exchanged', '1')
  if (place.classroom) found.set('class', '1')
  if (place.box && place.view === 'figure') found.set('box', place.box)
  if (place.idea && place.view === 'without') found.set('idea', place.idea)
  if (place.beside && place.view === 'compare') found.set('beside', place.beside)
  place.asked.forEach((asked, number) => {
    const set = (name: string, value: string) => found.set(number ? `${name}.${number + 1}` : name, value)
    if (asked.model) set('model', String(asked.model))
    if (asked.snapshot) set('snapshot', asked.snapshot)
    if (asked.text && asked.text.length <= ROOM) set('text', asked.text)
    if (asked.window) set('window', String(asked.window))
    if (asked.between) set('between', asked.between.map((code) => code ?? '').join(' '))
    if (asked.target !== null && asked.target.length <= ROOM) set('target', asked.target)
    if (asked.image && 'number' in asked.image) set('image', String(asked.image.number))
    if (asked.changes.off.length) set('off', asked.changes.off.map((head) => head.join('.')).join(' '))
    const without = (['positions', 'scaling', 'mask'] as const).filter((name) => !asked.changes[name])
    if (without.length) set('without', without.join(' '))
  })
  return `#${found.toString()}`
}

/** What an address does not say of a place, in words; null: it says all. */
export function leftOut({ asked }: Pick<Place, 'asked'>): string | null {
  if (asked.some(({ text, target }) => text.length > ROOM || (target?.length ?? 0) > ROOM)) return 'the text, which is too long for it'
  if (asked.some(({ image }) => image && 'pixels' in image)) return 'the drawn image'
  return null
}

export function read(hash: string): Partial<Place> & { asked: Partial<Asked>[] } {
  const given = new URLSearchParams(hash.replace(/^#/, ''))
  const whole = (text: string | null) => (text !== null && /^\d{1,6}$/.test(text) ? Number(text) : null)
  const kind = given.get('kind')
  const merge = given.get('merge')
  const one = <T extends string>(name: string, there: readonly T[]) => there.find((known) => known === given.get(name))
  const found: Partial<Place> & { asked: Partial<Asked>[] } = { asked: [] }
  if (given.has('view')) found.view = given.get('view')!
  if (isKind(kind)) found.kind = kind
  if (merge === 'mean' || merge === 'max' || merge === 'rollout') found.merge = merge
  found.layer = whole(given.get('layer'))
  const head = whole(given.get('head'))
  if (head) found.head = head
  found.whole = given.get('words') === '1'
  found.query = whole(given.get('token'))
  const step = whole(given.get('step'))
  if (step) found.step = step
  if (given.get('exchanged') === '1') found.exchanged = true
  if (given.get('class') === '1') found.classroom = true
  found.drawn = one('drawn', DRAWN) ?? null
  found.order = one('order', ORDERS) ?? 'place'
  found.beside = one('beside', BESIDE) ?? null
  found.box = given.get('box')
  found.idea = given.get('idea')
  for (const end of ['', '.2']) {
    const get = (name: string) => given.get(`${name}${end}`)
    if (end && ![...given.keys()].some((name) => name.endsWith(end))) break
    const asked: Partial<Asked> = { model: whole(get('model')) ?? 0, snapshot: get('snapshot') }
    if (get('text') !== null) asked.text = get('text')!
    const window = whole(get('window'))
    if (window) asked.window = window
    if (get('target') !== null) asked.target = get('target')
    const [from = '', to = ''] = (get('between') ?? '').split(' ')
    if (from || to) asked.between = [from || null, to || null]
    const image = whole(get('image'))
    if (image !== null) asked.image = { number: image }
    const without = (get('without') ?? '').split(' ')
    asked.changes = {
      off: (get('off') ?? '').split(' ').flatMap((text) => {
        const [use, layer, number] = text.split('.')
        return isKind(use) && whole(layer ?? null) && whole(number ?? null) ? [[use, Number(layer), Number(number)] as [Kind, number, number]] : []
      }),
      positions: !without.includes('positions'),
      scaling: !without.includes('scaling'),
      mask: !without.includes('mask'),
    }
    found.asked.push(asked)
  }
  return found
}
