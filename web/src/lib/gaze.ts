/** Where each step of a pass looked: the weights of a layer, a head, or all of them, by asking where they did not come with it. */

import { ask } from './api'
import type { Look, Shown } from './look'
import { headName } from './names'
import type { Asked, Kind, Model } from './types'

/** The use of attention that looks at what a step goes by: at what was read, or else at the text itself. */
export function looking(look: Look): Kind | null {
  return look.kinds.includes('cross') ? 'cross' : (look.kinds.at(-1) ?? null)
}

export async function gazes(look: Look, asked: Asked | null, shown: Shown, signal: AbortSignal): Promise<Float32Array | null> {
  const there = look.weights(shown)
  if (there || !asked) return there
  const { kind, merge, layer } = shown
  const head = merge === 'head' ? shown.head : null
  const { arrays } = await ask('head', { ...asked, kind, merge, layer, head }, signal)
  return arrays.weight!.data as Float32Array
}

/** What can be chosen: the mean of each layer, of all, and the head that is looked at elsewhere. */
export function choices(look: Look, model: Model, kind: Kind, elsewhere: Shown): { name: string; shown: Shown }[] {
  const { layers, heads } = look.sides(kind)
  const of = heads > 1 ? 'mean of the heads of ' : ''
  const found: { name: string; shown: Shown }[] = []
  for (let layer = layers; layer >= 1; layer--) found.push({ name: layers === 1 && heads === 1 ? 'its attention' : `${of}layer ${layer}`, shown: { kind, merge: 'mean', layer, head: 1 } })
  if (layers > 1) found.push({ name: 'mean of all layers', shown: { kind, merge: 'mean', layer: null, head: 1 } })
  const known = elsewhere.kind === kind && elsewhere.merge === 'head' && elsewhere.layer !== null && elsewhere.layer <= layers && elsewhere.head <= heads
  if (known && heads > 1 && model.kinds[kind]) found.push({ name: `${headName(kind, elsewhere.layer!, elsewhere.head)}, as in Heads`, shown: elsewhere })
  return found
}
