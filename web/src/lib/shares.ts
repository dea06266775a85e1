/** What attention says of each token beside what the gradient says. */

import type { Label, Look, Shown } from './look'
import { behind } from './pieces'
import { measure, steps } from './steps'
import type { Kind, Model } from './types'

export type Method = 'gradient_x_input' | 'integrated_gradients'
export const METHODS: readonly (readonly [Method, string])[] = [['integrated_gradients', 'integrated gradients'], ['gradient_x_input', 'gradient × input']]

/** An output that might have been instead: a piece by its number, or a label by its name. */
export interface Other {
  key: number | string
  name: string
}

/**
 * What an output can be set against, the most probable first: other candidates for a place, other labels. Of labels that may
 * all hold, and of tags, of which only the best is told, none stands out (`stands`).
 */
export function others(look: Look, { writes, labels }: Pick<Model, 'writes' | 'labels'>, place: number, label: string | null): { all: Other[]; stands: boolean } {
  const { output, written } = look.values
  if (output.kind === 'classes') {
    if (typeof output.said === 'number') return { all: [], stands: false }
    const explained = label ?? output.classes[0]?.[0]
    return { all: output.classes.flatMap(([name]) => (name === explained ? [] : [{ key: name, name }])), stands: !output.several }
  }
  if (output.kind === 'tags') {
    const token = written[place]
    const explained = token && output.tags.find(({ start, end }) => start <= token.start && token.end <= end)?.tag
    return { all: (labels ?? []).flatMap((name) => (name === explained ? [] : [{ key: name, name }])), stands: false }
  }
  const step = steps(look.values, writes).find((one) => one.place === place)
  const explained = step && measure(step.candidates)
  const all = (step?.candidates ?? []).flatMap((one) => (one === explained || one.id === undefined ? [] : [{ key: one.id, name: behind(step!.before, one.piece) }]))
  return { all, stands: true }
}

/** The use of attention by which a side is looked at: what is read, or what had been written before. */
export function lastLayer(look: Look, side: 'source' | 'target' = 'source'): { shown: Shown; kind: Kind } | null {
  const kind = side === 'target' ? look.kinds.find((one) => one === 'decoder') : look.kinds.includes('cross') ? 'cross' : look.kinds[0]
  if (!kind) return null
  return { kind, shown: { kind, merge: 'mean', layer: look.sides(kind).layers, head: 1 } }
}

/** One row of the weights; without one the mean of all. */
export function rowOrMean(data: Float32Array, rows: number, columns: number, row: number | null): Float32Array {
  if (row !== null) return data.slice(row * columns, (row + 1) * columns)
  const found = new Float32Array(columns)
  for (let at = 0; at < rows * columns; at++) found[at % columns]! += data[at]! / rows
  return found
}

/** Which row of the weights writes a token: a language model's token was written by the one before it. */
export function writer(writes: Model['writes'], place: number): number {
  return writes === 'continuation' ? place - 1 : place
}

/** The row of a picture that looks where a token is written. Null: none does. */
export function rowOf(look: Look, writes: Model['writes'], kind: Kind, place: number): number | null {
  if (writes === 'text' && kind === 'encoder') return null
  const row = writer(writes, place)
  return row >= 0 && row < look.tokens(look.sides(kind).queries).length ? row : null
}

/** Of the tokens that are written, how many can be seen by the row that writes one: without the mask all, also those behind it. */
export function seen(row: number, tokens: number, mask: boolean): number {
  return mask ? Math.min(row + 1, tokens) : tokens
}

/** Tokens that were looked at, in their order, with what each was given and what it added. */
export interface Shares {
  title: string
  tokens: Label[]
  /** null: nobody looked. */
  attention: Float32Array | null
  gradient: Float32Array
}

/** What the strongest colours stand for. */
export interface Scale {
  attention: number
  gradient: number
}

/** An addition that is too small to be told; and the least that has a strong colour. */
export const SLIGHT = 0.01
const STRONG = 0.1

/** One for both sides, so that what is as dark counts as much. */
export function scale(sides: readonly Pick<Shares, 'attention' | 'gradient'>[]): Scale {
  const most = (all: readonly (ArrayLike<number> | null)[]) => all.reduce((found, some) => Array.from(some ?? []).reduce((a, b) => Math.max(a, Math.abs(b)), found), 0)
  return { attention: most(sides.map((side) => side.attention)) || 1, gradient: Math.max(STRONG, most(sides.map((side) => side.gradient))) }
}

/**
 * What was added to the logarithm of a probability as an addition to its log-odds, log p − log (1 − p): what is almost certain
 * has a logarithm that can hardly grow any more, whatever speaks for it.
 */
export function ofOdds(added: Float32Array, logarithm: number): Float32Array {
  const other = -Math.expm1(logarithm)
  return added.map((value) => (other > 0 ? value / other : 0))
}

/** How strong a colour is, from −1 to 1: none for what is too small to be told. */
export function strength(value: number, full: number): number {
  return Math.abs(value) < SLIGHT ? 0 : value / full
}

/** Where the largest is that can be told: by sides, then by places. Null: there is none. */
export function top(sides: readonly (ArrayLike<number> | null)[], least = 0): [side: number, at: number] | null {
  let [found, most] = [null as [number, number] | null, least]
  sides.forEach((values, side) => {
    for (let at = 0; at < (values?.length ?? 0); at++) if (values![at]! > most) [found, most] = [[side, at], values![at]!]
  })
  return found
}
