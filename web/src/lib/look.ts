/** One pass of a model as the page has it, and the pictures of heads that can be made of it. */

import type { Payload } from './payload'
import { clean, named, spot } from './pieces'
import { KINDS, type Kind, type LookValues, type Merge, type Side, type Token } from './types'

/** A row or column of a picture: a token, or a word and the places of its tokens. */
export interface Label {
  text: string
  /** As it is shown where it stands alone. */
  name: string
  special: boolean
  places: number[]
  /** A space stands before it in the text; nothing: only its piece says whether. */
  space?: boolean
}

/** Weights with names: rows look, columns are looked at, and a row sums to one (or to nothing, where nothing is seen). */
export interface Picture {
  rows: Label[]
  columns: Label[]
  data: Float32Array
}

export interface Measures {
  entropy: number
  distance: number
  special: number
}

export interface Shown {
  kind: Kind
  merge: Merge
  /** null: all layers. */
  layer: number | null
  head: number
}

export class Look {
  constructor(readonly payload: Payload<LookValues>) {}

  get values(): LookValues {
    return this.payload.values
  }

  /** The uses of attention that were seen, in the order of the paper. */
  get kinds(): Kind[] {
    return KINDS.filter((kind) => kind in this.values.kinds)
  }

  sides(kind: Kind): { queries: Side; keys: Side; layers: number; heads: number } {
    return this.values.kinds[kind]!
  }

  tokens(side: Side): Token[] {
    return this.values[side] ?? []
  }

  labels(side: Side, whole: boolean): Label[] {
    const tokens = this.tokens(side)
    const said = this.values.image ? spot : (text: string) => text
    if (!whole) return tokens.map((token, place) => ({ text: said(token.text), name: named(tokens, place), special: token.special, places: [place], space: place > 0 && token.start > tokens[place - 1]!.end }))
    return (this.values.words[side] ?? []).map(([text, places]) => ({
      text: said(text),
      name: clean(text),
      special: places.every((place) => tokens[place]!.special),
      places,
    }))
  }

  /** The small picture of a head, rows by columns of bytes; one scale for all heads: the largest cell of all is 255. */
  small(kind: Kind, layer: number, head: number): { rows: number; columns: number; data: Uint8Array } {
    const { shape, data } = this.payload.arrays[`small.${kind}`]!
    const [, heads, rows, columns] = shape as [number, number, number, number]
    const at = (layer - 1) * heads + head - 1
    const share = this.payload.arrays[`largest.${kind}`]!.data[at]! / (this.full(kind) || 1)
    const cells = (data as Uint8Array).subarray(at * rows * columns, (at + 1) * rows * columns)
    return { rows, columns, data: cells.map((cell) => Math.round(cell * share)) }
  }

  /** The largest weight in the small picture of a head. */
  largest(kind: Kind, layer: number, head: number): number {
    const { shape, data } = this.payload.arrays[`largest.${kind}`]!
    return data[(layer - 1) * shape[1]! + head - 1]!
  }

  /** The largest of all heads of a kind: full ink. */
  full(kind: Kind): number {
    return largest(this.payload.arrays[`largest.${kind}`]!.data as Float32Array)
  }

  measures(kind: Kind, layer: number, head: number): Measures {
    const { shape, data } = this.payload.arrays[`measures.${kind}`]!
    const begin = ((layer - 1) * shape[1]! + head - 1) * 3
    return { entropy: data[begin]!, distance: data[begin + 1]!, special: data[begin + 2]! }
  }

  /** `weight_QK` where the server sent all weights at once; null: it has to be asked. */
  weights({ kind, merge, layer, head }: Shown): Float32Array | null {
    const all = this.payload.arrays[`weights.${kind}`]
    if (!all) return null
    const [layers, heads, queries, keys] = all.shape as [number, number, number, number]
    const size = queries * keys
    const one = (l: number, h: number) =>
      (all.data as Float32Array).subarray(((l - 1) * heads + h - 1) * size, ((l - 1) * heads + h) * size)
    const some = (from: number, to: number) => {
      const found: Float32Array[] = []
      for (let l = from; l <= to; l++) for (let h = 1; h <= heads; h++) found.push(one(l, h))
      return found
    }
    if (merge === 'head') return one(layer ?? layers, head)
    if (merge === 'rollout') {
      const below = Array.from({ length: layer ?? layers }, (_, l) => some(l + 1, l + 1))
      return rollout(below, queries)
    }
    return merged(layer === null ? some(1, layers) : some(layer, layer), merge)
  }

  /** `weight_LHK` from one token, or the mean of several, where the server sent all weights at once. */
  row(kind: Kind, places: readonly number[]): Float32Array | null {
    const all = this.payload.arrays[`weights.${kind}`]
    if (!all) return null
    const [layers, heads, queries, keys] = all.shape as [number, number, number, number]
    const found = new Float32Array(layers * heads * keys)
    for (let head = 0; head < layers * heads; head++)
      for (const place of places)
        for (let key = 0; key < keys; key++) found[head * keys + key]! += all.data[(head * queries + place) * keys + key]! / places.length
    return found
  }

  picture(kind: Kind, data: Float32Array, whole: boolean): Picture {
    const { queries, keys } = this.sides(kind)
    const rows = this.labels(queries, whole)
    const columns = this.labels(keys, whole)
    return { rows, columns, data: whole ? byWord(data, rows, columns, this.tokens(keys).length) : data }
  }
}

export function merged(heads: readonly Float32Array[], how: 'mean' | 'max'): Float32Array {
  const found = new Float32Array(heads[0]!.length)
  for (const head of heads) {
    if (how === 'mean') for (let i = 0; i < found.length; i++) found[i]! += head[i]! / heads.length
    else for (let i = 0; i < found.length; i++) found[i] = Math.max(found[i]!, head[i]!)
  }
  return found
}

/** From the tokens at the top of a stack to those that entered it: heads count alike, half passes by [Abnar20 §3]. */
export function rollout(layers: readonly (readonly Float32Array[])[], size: number): Float32Array {
  let found = new Float32Array(size * size)
  for (let i = 0; i < size; i++) found[i * size + i] = 1
  for (const heads of layers) {
    const mean = merged(heads, 'mean')
    const next = new Float32Array(size * size)
    for (let row = 0; row < size; row++) {
      let sum = 1
      for (let column = 0; column < size; column++) sum += mean[row * size + column]!
      for (let middle = 0; middle < size; middle++) {
        const share = (mean[row * size + middle]! + (row === middle ? 1 : 0)) / sum
        if (share) for (let column = 0; column < size; column++) next[row * size + column]! += share * found[middle * size + column]!
      }
    }
    found = next
  }
  return found
}

/** Weights between words: summed over a key word's tokens, averaged over a query word's. */
export function byWord(data: Float32Array, rows: readonly Label[], columns: readonly Label[], keys: number): Float32Array {
  const found = new Float32Array(rows.length * columns.length)
  rows.forEach((row, r) => {
    for (const query of row.places)
      columns.forEach((column, c) => {
        for (const key of column.places) found[r * columns.length + c]! += data[query * keys + key]! / row.places.length
      })
  })
  return found
}

export function largest(data: Float32Array): number {
  return data.reduce((most, one) => Math.max(most, one), 0)
}

/** The columns a row gives most to, the largest first. */
export function strongest(picture: Picture, row: number, most: number): { column: number; weight: number }[] {
  const width = picture.columns.length
  return Array.from({ length: width }, (_, column) => ({ column, weight: picture.data[row * width + column]! }))
    .sort((a, b) => b.weight - a.weight || a.column - b.column)
    .slice(0, most)
}
