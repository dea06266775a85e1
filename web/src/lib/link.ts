/** What the page shows, as an address: behind #, so that it never leaves the machine. */

import type { Asked, Changes, Kind, Merge, Model } from './types'

export interface Place {
  view: string
  kind: Kind | null
  layer: number | null
  head: number
  merge: Merge
  whole: boolean
  query: number | null
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
  place.asked.forEach((asked, number) => {
    const set = (name: string, value: string) => found.set(number ? `${name}.${number + 1}` : name, value)
    if (asked.model) set('model', String(asked.model))
    if (asked.snapshot) set('snapshot', asked.snapshot)
    if (asked.text && asked.text.length <= ROOM) set('text', asked.text)
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
  const found: Partial<Place> & { asked: Partial<Asked>[] } = { asked: [] }
  if (given.has('view')) found.view = given.get('view')!
  if (kind === 'encoder' || kind === 'decoder' || kind === 'cross') found.kind = kind
  if (merge === 'mean' || merge === 'max' || merge === 'rollout') found.merge = merge
  found.layer = whole(given.get('layer'))
  const head = whole(given.get('head'))
  if (head) found.head = head
  found.whole = given.get('words') === '1'
  found.query = whole(given.get('token'))
  for (const end of ['', '.2']) {
    const get = (name: string) => given.get(`${name}${end}`)
    if (end && ![...given.keys()].some((name) => name.endsWith(end))) break
    const one: Partial<Asked> = { model: whole(get('model')) ?? 0, snapshot: get('snapshot') }
    if (get('text') !== null) one.text = get('text')!
    if (get('target') !== null) one.target = get('target')
    const image = whole(get('image'))
    if (image !== null) one.image = { number: image }
    const without = (get('without') ?? '').split(' ')
    one.changes = {
      off: (get('off') ?? '').split(' ').flatMap((text) => {
        const [use, layer, number] = text.split('.')
        const known = use === 'encoder' || use === 'decoder' || use === 'cross'
        return known && whole(layer ?? null) && whole(number ?? null) ? [[use, Number(layer), Number(number)] as [Kind, number, number]] : []
      }),
      positions: !without.includes('positions'),
      scaling: !without.includes('scaling'),
      mask: !without.includes('mask'),
    }
    found.asked.push(one)
  }
  return found
}
