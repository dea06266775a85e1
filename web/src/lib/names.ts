/** What things are called on the page. */

import type { Look, Picture, Shown } from './look'
import { strongest } from './look'
import { percent } from './numbers'
import { clean } from './pieces'
import type { Kind, Model } from './types'

export const KIND_NAMES: Record<Kind, string> = {
  encoder: 'Encoder self-attention',
  decoder: 'Decoder self-attention',
  cross: 'Encoder-decoder attention',
}

/** A few words on who looks at what. */
export function explained(kind: Kind, model: Model): string {
  if (model.image) return 'Every patch of the image looks at every other.'
  if (kind === 'cross') return 'Each word that is about to be written looks at the words that were read.'
  if (kind === 'decoder' && model.masked.includes('decoder')) return 'Each token looks at itself and at those before it.'
  return 'Each token looks at every token of the text, itself included.'
}

export function kindName(kind: Kind, model: Model): string {
  if (model.family === 'rnn') return 'Alignment: what is written looks at what is read'
  if (model.family === 'gpt') return 'Self-attention, looking back'
  if (model.family === 'bert' || model.family === 'vit') return 'Self-attention'
  return KIND_NAMES[kind]
}

export function sideNames(kind: Kind): [string, string] {
  if (kind === 'cross') return ['what is written', 'what is read']
  return ['who looks', 'what is looked at']
}

export function shownName({ merge, layer, head }: Shown): string {
  const where = layer === null ? 'all layers' : `layer ${layer}`
  if (merge === 'head') return `layer ${layer}, head ${head}`
  if (merge === 'rollout') return layer === null ? 'rollout through all layers' : `rollout up to layer ${layer}`
  return `${merge === 'mean' ? 'mean' : 'maximum'} over the heads of ${where}`
}

/** Where a row looks, in words. */
export function gaze(picture: Picture, row: number, most = 4): string {
  const found = strongest(picture, row, most).filter(({ weight }) => weight >= 0.005)
  if (!found.length) return 'looks at nothing'
  return `looks at ${found.map(({ column, weight }) => `${clean(picture.columns[column]!.text)} ${percent(weight)}`).join(' · ')}`
}

export function same(look: Look, kind: Kind): boolean {
  const { queries, keys } = look.sides(kind)
  return queries === keys
}

export { clean }
