/** What a token or a label needs: every head switched off in turn, and how probable it then still is. */

import { ask } from './api'
import type { Label, Look } from './look'
import { clean, headName, shortened } from './names'
import { writer } from './shares'
import { apart, number } from './numbers'
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

/** What is written where a row looks: the decoder reads one token and is about to write the next. Null: nothing is. */
export function written(look: Look, writes: Model['writes'], kind: Kind, row: Label, whole: boolean): Label | null {
  if (writes !== 'continuation' && (writes !== 'text' || kind === 'encoder')) return null
  // of a word in several pieces the last is the one behind which another word may come
  const place = writes === 'text' && kind === 'cross' ? row.places[0]! : row.places.at(-1)! - writer(writes, 0)
  return look.labels('written', whole).find(({ places }) => places.includes(place)) ?? null
}

/** What can be asked of a model's output; a classifier's label needs no token. Null: of this token nothing is said. */
export function wanted(look: Look, writes: Model['writes'], kind: Kind, kept: Label | null, whole = false): Wanted | null {
  const { output } = look.values
  if (output.kind === 'classes') {
    if (typeof output.said === 'number') return { name: 'what it says', places: [], label: null }
    const label = output.classes[0]?.[0]
    return label === undefined ? null : { name: `“${label}”`, places: [], label }
  }
  if (!kept) return null
  if (writes === 'text' || writes === 'continuation') {
    const next = written(look, writes, kind, kept, whole)
    return next && { name: `“${shortened(next.name)}”`, places: next.places, label: null }
  }
  const place = kept.places[0]!
  if (output.kind === 'words') {
    const gaps = look.values.source.flatMap(({ text }, at) => (hidden(text) ? [at] : []))
    const best = output.gaps[gaps.indexOf(place)]?.[0]
    return best ? { name: `“${shortened(clean(best[0]))}”`, places: [place], label: null } : null
  }
  if (output.kind === 'tags') {
    const token = look.values.source[place]!
    const word = output.tags.find(({ start, end }) => start < token.end && token.end <= end)
    return token.special || !word ? null : { name: `“${shortened(word.text)}” as ${word.tag}`, places: [place], label: word.tag }
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
export function amount({ logarithm }: Pick<Needs, 'logarithm'>, score: number, more = 0): string {
  return logarithm ? chance(Math.exp(score), more) : number(score, 3 + more)
}

/** What it is with all heads, and without one: told apart where they differ. */
export function beside(found: Pick<Needs, 'whole' | 'logarithm'>, score: number): [string, string] {
  return apart(found.whole, score, (value, more) => amount(found, value, more))
}

/** Heads that were switched off in turn; those that are off already say nothing. */
export function on(found: Needs, off: readonly (readonly [Kind, number, number])[] = []): Need[] {
  return found.heads.filter(({ kind, layer, head }) => !off.some(([k, l, h]) => k === kind && l === layer && h === head))
}

/** Those that matter most first. */
export function ranked(found: Needs, off: readonly (readonly [Kind, number, number])[] = []): Need[] {
  return on(found, off).sort((a, b) => lost(found, b) - lost(found, a))
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
    return { before: `No head is needed alone: without any one of them ${name} ${stays(found, first, all)}.`, first: null, behind: '' }
  }
  const how = found.logarithm ? 'falls' : 'goes'
  const [was, is] = beside(found, first.score)
  const next = second && !slight(found, second) ? ` (next: ${headName(second.kind, second.layer, second.head)}, ${apart(first.score, second.score, (value, more) => amount(found, value, more))[1]})` : ''
  const only = second ? `; no other head matters as much${next}` : ''
  return { before: 'Without ', first, behind: ` ${name} ${how} from ${was} to ${is}${only}.` }
}

/** What is left in any case where no head matters. */
function stays(found: Needs, first: Need, all: string): string {
  if (!found.logarithm) return lost(found, first) ? `changes by ${number(lost(found, first))} at most, from ${all}` : `stays ${all}`
  const least = amount(found, first.score)
  return first.score >= found.whole || least === all ? `keeps ${all}${first.score > found.whole ? ' or more' : ''}` : `keeps ${least} or more, of ${all}`
}
