/** What a token or a label needs: every head switched off in turn, and how probable it then still is. */

import { ask } from './api'
import type { Label, Look } from './look'
import { clean, headName } from './names'
import { number } from './numbers'
import { chance, hidden } from './steps'
import type { Asked, Kind, Model } from './types'

/** What is asked after: pieces that were written or a word of the text by their places, or a label. */
export interface Wanted {
  /** As it is called in a sentence. */
  name: string
  places: number[]
  label: string | null
}

export interface Need {
  kind: Kind
  layer: number
  head: number
  /** Without it. */
  score: number
}

export interface Needs {
  /** With all heads. */
  whole: number
  /** The scores are logarithms of probabilities. */
  logarithm: boolean
  total: number
  heads: Need[]
}

/** What can be asked of a model's output; a classifier's label needs no token. Null: of this token nothing is said. */
export function wanted(look: Look, writes: Model['writes'], kind: Kind, kept: Label | null): Wanted | null {
  const { output } = look.values
  if (output.kind === 'classes') {
    if (typeof output.said === 'number') return { name: 'what it says', places: [], label: null }
    const label = output.classes[0]?.[0]
    return label === undefined ? null : { name: `“${label}”`, places: [], label }
  }
  if (!kept) return null
  const name = `“${kept.name}”`
  if (writes === 'text' && kind !== 'encoder') {
    // the decoder reads a token one place behind where it was written
    const places = kept.places.map((place) => (kind === 'decoder' ? place - 1 : place))
    return places[0]! < 0 ? null : { name, places, label: null }
  }
  if (writes === 'continuation') return kept.places[0]! > 0 ? { name, places: kept.places, label: null } : null
  const place = kept.places[0]!
  if (output.kind === 'words') {
    const gaps = look.values.source.flatMap(({ text }, at) => (hidden(text) ? [at] : []))
    const best = output.gaps[gaps.indexOf(place)]?.[0]
    return best ? { name: `“${clean(best[0])}”`, places: [place], label: null } : null
  }
  if (output.kind === 'tags') {
    const token = look.values.source[place]!
    const word = output.tags.find(({ start, end }) => start < token.end && token.end <= end)
    return token.special || !word ? null : { name: `“${word.text}” as ${word.tag}`, places: [place], label: word.tag }
  }
  return null
}

/** Ask until every head was switched off; what is known so far is told as it comes. */
export async function needs(asked: Asked, { places, label }: Wanted, told: (found: Needs) => void, signal: AbortSignal): Promise<void> {
  let found: Needs
  const heads: Need[] = []
  do {
    const { values, arrays } = await ask<{ score: number; logarithm: boolean; heads: [Kind, number, number][]; total: number }>(
      'needs',
      { ...asked, ...(places.length ? { places } : {}), label, begin: heads.length },
      signal,
    )
    values.heads.forEach(([kind, layer, head], at) => heads.push({ kind, layer, head, score: arrays.without!.data[at]! }))
    found = { whole: values.score, logarithm: values.logarithm, total: values.total, heads: [...heads] }
    told(found)
    if (!values.heads.length) return
  } while (heads.length < found.total)
}

/** How much is lost without a head: of a logarithm what it falls by, of a number what it changes by. */
export function lost({ whole, logarithm }: Needs, { score }: Need): number {
  return logarithm ? whole - score : Math.abs(whole - score)
}

/** A score as people read it. */
export function amount({ logarithm }: Pick<Needs, 'logarithm'>, score: number): string {
  return logarithm ? chance(Math.exp(score)) : number(score)
}

/** Those that matter most first; heads that are off already say nothing. */
export function ranked(found: Needs, off: readonly (readonly [Kind, number, number])[] = []): Need[] {
  const on = found.heads.filter(({ kind, layer, head }) => !off.some(([k, l, h]) => k === kind && l === layer && h === head))
  return on.sort((a, b) => lost(found, b) - lost(found, a))
}

/** Less than a twentieth of what it was is lost. */
export function slight(found: Needs, one: Need): boolean {
  return lost(found, one) < (found.logarithm ? 0.05 : 0.05 * Math.abs(found.whole))
}

/** The answer in a sentence, around the name of the head that matters most; without one where none matters. */
export function told(found: Needs, name: string, off: readonly (readonly [Kind, number, number])[] = []): { before: string; first: Need | null; behind: string } {
  const [first, second] = ranked(found, off)
  const all = amount(found, found.whole)
  if (!first) return { before: `No head is left to be switched off: ${name} has ${all}.`, first: null, behind: '' }
  if (slight(found, first)) {
    const least = amount(found, first.score)
    return { before: `No head is needed alone: without any one of them ${name} keeps ${least === all ? all : `${least} or more, of ${all}`}.`, first: null, behind: '' }
  }
  const how = found.logarithm ? 'falls' : 'goes'
  const next = second && !slight(found, second) ? ` (next: ${headName(second.kind, second.layer, second.head)}, ${amount(found, second.score)})` : ''
  const only = second ? `; no other head matters as much${next}` : ''
  return { before: 'Without ', first, behind: ` ${name} ${how} from ${all} to ${amount(found, first.score)}${only}.` }
}
