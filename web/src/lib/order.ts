/** A sentence with its words in another order, and what that changes. */

import { chance as shown } from './steps'
import { apart, times } from './numbers'
import type { LookValues } from './types'

/** Numbers from 0 to 1, always the same for one seed. */
export function chance(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const END = /(?<=[^\s.!?…。])[.!?…。]+$/

/**
 * The words shuffled; the mark at the end stays there, and so does the first word, before which no space stands: so
 * all words keep their pieces. Of a text without spaces the characters are shuffled. Null where there is one order only.
 */
export function shuffled(text: string, seed: number): string | null {
  const trimmed = text.trim()
  const end = END.exec(trimmed)?.[0] ?? ''
  const body = trimmed.slice(0, trimmed.length - end.length)
  const spaced = /\s/.test(body)
  const whole = spaced ? body.split(/\s+/) : [...body]
  const first = new Set(whole.slice(1)).size > 1 ? whole.slice(0, 1) : []
  const words = whole.slice(first.length)
  if (new Set(words).size < 2) return null
  const random = chance(seed)
  for (;;) {
    const found = [...words]
    for (let last = found.length - 1; last > 0; last--) {
      const at = Math.floor(random() * (last + 1))
      ;[found[last], found[at]] = [found[at]!, found[last]!]
    }
    if (found.some((word, at) => word !== words[at])) return [...first, ...found].join(spaced ? ' ' : '') + end
  }
}

/** Whether two lists hold the same things, in whatever order. */
export function sameBag(one: readonly string[], other: readonly string[]): boolean {
  if (one.length !== other.length) return false
  const [a, b] = [[...one].sort(), [...other].sort()]
  return a.every((text, at) => text === b[at])
}

export interface Word {
  text: string
  start: number
  end: number
  /** Nothing but a space stands between it and the word before. */
  next: boolean
}

/** The words of a text, and where they stand; marks and gaps are none. */
export function words(text: string): Word[] {
  const gaps = [...text.matchAll(/\[MASK\]|<[^<>\s]+>/g)].map((found) => [found.index, found.index + found[0].length] as const)
  return [...text.matchAll(/[\p{L}\p{N}\p{M}]+(?:['’-][\p{L}\p{N}\p{M}]+)*/gu)]
    .map((found) => ({ text: found[0], start: found.index, end: found.index + found[0].length }))
    .filter(({ start }) => !gaps.some(([from, to]) => from <= start && start < to))
    .map((word, at, all) => ({ ...word, next: at > 0 && !text.slice(all[at - 1]!.end, word.start).trim() }))
}

export const ARTICLES = /^(the|an?|der|die|das|den|dem|des|eine?[mnrs]?|le|la|les|une?|des|il|lo|gli|i|el|los|las|una|de|het|een|o|os|as|um|uma)$/i

/**
 * Two words of one sort to exchange, by their numbers: those behind the same article, else behind two, else the two longest,
 * both with a capital or both without. The first word stays where it is if it can: it is written otherwise there. Null: there are no two.
 */
export function pair(all: readonly Word[]): [number, number] | null {
  const low = (at: number) => all[at]!.text.toLowerCase()
  const places = all.map((_, at) => at)
  const two = (some: readonly number[], fits = (_a: number, _b: number) => true): [number, number] | null => {
    for (const a of some) for (const b of some) if (a !== b && low(a) !== low(b) && fits(a, b)) return a < b ? [a, b] : [b, a]
    return null
  }
  const behind = places.filter((at) => all[at]!.next && ARTICLES.test(all[at - 1]!.text) && !ARTICLES.test(all[at]!.text))
  const long = places.slice(1).sort((a, b) => all[b]!.text.length - all[a]!.text.length || a - b)
  const capital = (at: number) => /^\p{Lu}/u.test(all[at]!.text)
  const alike = (a: number, b: number) => capital(a) === capital(b)
  return two(behind, (a, b) => alike(a, b) && low(a - 1) === low(b - 1)) ?? two(behind, alike) ?? two(long, alike) ?? two(long) ?? two(places)
}

/** The text with two of its words exchanged. */
export function exchanged(text: string, all: readonly Word[], [a, b]: readonly [number, number]): string {
  const [first, second] = [all[Math.min(a, b)]!, all[Math.max(a, b)]!]
  return text.slice(0, first.start) + second.text + text.slice(first.end, second.start) + first.text + text.slice(second.end)
}

/** The logarithms of how probable one and the same output is: before both orders, with positions and without. */
export interface Measured {
  with: readonly [number, number]
  without: readonly [number, number]
}

/** What the numbers are of, and what else is known. */
export interface Orders {
  /** What is measured: `the same output`, `the label “good”`. */
  what: string
  /** What was done to the sentence: `the two words are exchanged`. */
  when: string
  /** The second order gives another output with positions. */
  other: boolean
  /** Both orders are cut into the same pieces. */
  bag: boolean
  /** Each token sees those before it alone. */
  masked: boolean
}

/** So near to one another are logarithms that differ by rounding alone; and so near that people would not care. */
const ROUNDING = 1e-4
const LITTLE = Math.log(1.05)
const HUGE = Math.log(1e6)

/** How many times: a number that people can read. */
function factor(logarithm: number): string {
  const size = Math.abs(logarithm)
  return size > HUGE ? 'more than a million times' : times(Math.exp(size), 1)
}

function compared(before: number, after: number): string {
  if (Math.abs(before - after) < LITTLE) return 'about as probable'
  return `${factor(before - after)} ${after < before ? 'less' : 'more'} probable`
}

/** What is to be learned from it, in two sentences that are as true as the numbers. */
export function conclusion({ with: own, without }: Measured, { what, when, other, bag, masked }: Orders): string {
  const alike = Math.abs(own[0] - own[1]) < LITTLE && !other
  const more = other ? ', and something else comes out' : alike ? ': here the order tells this model nothing that it needs (try other words)' : ''
  const first = `With positions ${what} is ${compared(own[0], own[1])} when ${when}${more}`
  const same = Math.abs(without[0] - without[1]) < ROUNDING
  if (same && bag && !masked) return `${first}. Without positions both orders are one and the same to the model, but for rounding: it reads a bag of words.`
  if (same) return `${first}. Without positions it makes no difference here.`
  const second = `Without positions it is ${compared(without[0], without[1])}`
  if (masked) return `${first}. ${second}: each token still sees those before it alone, and that tells something of the order.`
  if (!bag) return `${first}. ${second}, for in another order the words are cut into other pieces: the two bags are not the same.`
  return `${first}. ${second}, though both orders are the same bag of pieces.`
}

const RAISED = '⁰¹²³⁴⁵⁶⁷⁸⁹'

/** A probability by its logarithm, which may be smaller than any number a machine has: 64 % · 0.0002 % · 7.7 × 10⁻²⁰ %. */
export function likely(logarithm: number, more = 0): string {
  if (logarithm >= Math.log(1e-3)) return shown(Math.exp(logarithm), more)
  // rounded first: 9.96 is ten
  const tens = logarithm / Math.LN10
  const rounded = Number((10 ** (tens - Math.floor(tens))).toPrecision(2 + more))
  const [first, power] = rounded < 10 ? [rounded, Math.floor(tens)] : [1, Math.floor(tens) + 1]
  if (power >= -7) return `${Number((first * 10 ** (power + 2)).toPrecision(2 + more)).toFixed(-power - 1 + more).replace(/0+$/, '')} %`
  return `${first} × 10⁻${[...String(-power - 2)].map((digit) => RAISED[Number(digit)]).join('')} %`
}

/** How probable one output is before one order or two: told apart where they differ by more than rounding. Null: it is not known. */
export function likelies(logarithms: readonly (number | null)[]): (string | null)[] {
  const [a, b] = logarithms
  if (a != null && b != null && Math.abs(a - b) >= ROUNDING) return apart(a, b, likely)
  return logarithms.map((one) => (one === null ? null : likely(one)))
}

/** The logarithm of how probable all of some tokens are; null: of one it is not known. */
export function together(probabilities: readonly (number | null)[]): number | null {
  return probabilities.some((one) => one === null) ? null : probabilities.reduce<number>((sum, one) => sum + Math.log(one!), 0)
}

/**
 * How probable the output of one reading is in another, as a logarithm: of the label that was said, of the words that filled
 * the gaps, or of all that was written; of a language model of what stands behind the `given` tokens of the text. Null: it is not known.
 */
export function measured(first: LookValues, other: LookValues, given: number, shuffled = false): number | null {
  const [one, two] = [first.output, other.output]
  if (one.kind === 'classes' && two.kind === 'classes') {
    const share = two.classes.find(([label]) => label === one.classes[0]?.[0])?.[1]
    return share === undefined ? null : Math.log(share)
  }
  if (one.kind === 'words' && two.kind === 'words') {
    // which gap is which nobody can say where all words are mixed
    if (one.gaps.length !== two.gaps.length || (shuffled && one.gaps.length > 1)) return null
    return together(one.gaps.map((gap, at) => two.gaps[at]!.find(([word]) => word === gap[0]?.[0])?.[1] ?? null))
  }
  if (!other.probability) return null
  const counted = one.kind === 'continuation' ? other.probability.slice(given) : other.probability
  return counted.length ? together(counted) : null
}
