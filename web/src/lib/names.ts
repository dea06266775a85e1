/** What things are called on the page. */

import type { Label, Look, Picture, Shown } from './look'
import { strongest } from './look'
import { percent } from './numbers'
import { clean } from './pieces'
import type { Kind, Model } from './types'

export const KIND_NAMES: Record<Kind, string> = {
  encoder: 'Encoder self-attention',
  decoder: 'Decoder self-attention',
  cross: 'Encoder–decoder attention',
  pool: 'Attention pooling: the words that the text is made of',
}

/** A use of attention in a word. */
export const USES: Record<Kind, string> = { encoder: 'encoder', decoder: 'decoder', cross: 'encoder–decoder', pool: 'pooling' }

/** What a head is called, everywhere: layer and head are counted from 1. */
export function headName(kind: Kind, layer: number, head: number): string {
  return `${USES[kind]} head ${layer}·${head}`
}

/** The same spelled out, where there is room for it. */
export function headSpelled(layer: number, head: number): string {
  return `layer ${layer}, head ${head}`
}

/** A few words on who looks at what. */
export function explained(kind: Kind, model: Model): string {
  if (model.image) return 'Every patch of the image looks at every other.'
  if (kind === 'pool') return 'One query, which was learned and is the same for every text, looks at all tokens; their mean, weighed so, is what the text is judged by.'
  if (kind === 'cross') return 'Each word that is about to be written looks at the words that were read.'
  if (kind === 'decoder' && model.masked.includes('decoder')) return 'Each token looks at itself and at those before it; there the next one is about to be written.'
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
  if (kind === 'pool') return ['who looks', 'what is read']
  return ['who looks', 'what is looked at']
}

export function shownName({ kind, merge, layer, head }: Shown): string {
  const use = USES[kind]
  if (merge === 'head' && layer !== null) return headName(kind, layer, head)
  if (merge === 'rollout') return layer === null ? `rollout through all ${use} layers` : `rollout up to ${use} layer ${layer}`
  const heads = layer === null ? `all ${use} heads` : `the ${use} heads of layer ${layer}`
  return `${merge === 'mean' ? 'mean' : 'maximum'} over ${heads}`
}

/** How what is seen was written: greedily, if nothing was forced. Nothing: the model writes no text. */
export function manner(writes: Model['writes'], forced: boolean): string {
  if (writes !== 'text' && writes !== 'continuation') return ''
  return forced ? 'as it was made to' : 'greedily'
}

/** The same of a search that keeps so many prefixes. */
export function searchName(beam: number): string {
  return beam === 1 ? 'the greedy search' : `the search with a beam of ${beam}`
}

/** A sentence or a title begins with a capital. */
export function capital(text: string): string {
  return text.replace(/^\p{Ll}/u, (letter) => letter.toUpperCase())
}

/** What a label is called in a sentence: places of an image have words for it. */
export function spoken({ text, name }: Pick<Label, 'text' | 'name'>): string {
  return text.includes(' ') ? text : name
}

/** The same in quotation marks, so that a full stop that was read does not end the sentence. */
export function quoted(label: Pick<Label, 'text' | 'name'>): string {
  return label.text.includes(' ') ? label.text : `“${shortened(label.name)}”`
}

/** Characters of a word in a sentence; a model that has learned little writes words of hundreds. */
const LONGEST = 32

/** A word that is too long for a sentence about it, cut in the middle. */
export function shortened(word: string): string {
  return word.length <= LONGEST ? word : `${word.slice(0, LONGEST / 2)}…${word.slice(-4)}`
}

/** Where a row looks, in words. */
export function gaze(picture: Picture, row: number, most = 4): string {
  const found = strongest(picture, row, most).filter(({ weight }) => weight >= 0.005)
  if (!found.length) return 'looks at nothing'
  return `looks at ${found.map(({ column, weight }) => `${quoted(picture.columns[column]!)} ${percent(weight)}`).join(' · ')}`
}

export function same(look: Look, kind: Kind): boolean {
  const { queries, keys } = look.sides(kind)
  return queries === keys
}

export { clean }
