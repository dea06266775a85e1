/** One query of one head, every step of softmax(QKᵀ / √d_k) V, as the page has it. */

import type { Payload } from './payload'
import type { Token } from './types'

export interface EquationValues {
  divisor: number
  /** The score is vᵀ tanh(q + k). */
  additive: boolean
}

/** What the reader takes away to see what it is for: one of them, or none. */
export interface Without {
  scaling: boolean
  mask: boolean
}

/** The softmax on its way: e to the power of each number less `shift`, and their sum. */
export interface Exponentials {
  data: Float64Array
  sum: number
  shift: number
}

/** Up to here e to the power of a number is one that people read. */
const LEGIBLE = 9

export class Equation {
  readonly query: Float32Array
  readonly score: Float32Array
  readonly bias: Float32Array
  readonly weight: Float32Array
  readonly hidden: Uint8Array
  readonly divisor: number
  readonly additive: boolean
  /** Numbers of a query or key, and of a value. */
  readonly wide: number
  readonly deep: number
  /** What softmax is taken of, before anything is hidden. */
  readonly scaled: Float32Array
  /** The values, mixed by the weights. */
  readonly context: Float64Array
  readonly #payload: Payload<EquationValues>

  constructor(payload: Payload<EquationValues>) {
    const { values } = payload
    this.#payload = payload
    this.query = this.#floats('query')
    this.bias = this.#floats('bias')
    this.weight = this.#floats('weight')
    this.hidden = payload.arrays.hidden!.data as Uint8Array
    this.additive = values.additive
    this.divisor = values.divisor
    this.wide = this.query.length
    this.deep = payload.arrays.value!.shape[1]!
    // a product is the sum of what is shown, to the last digit
    this.score = values.additive ? this.#floats('score') : Float32Array.from({ length: this.size }, (_, key) => sum(this.products(key)))
    this.scaled = this.score.map((score, key) => score / this.divisor + this.bias[key]!)
    this.context = this.mixed(this.weight)
  }

  #floats(name: string): Float32Array {
    return this.#payload.arrays[name]!.data as Float32Array
  }

  /** Tokens that are looked at. */
  get size(): number {
    return this.weight.length
  }

  get keys(): Float32Array {
    return this.#floats('key')
  }

  get values(): Float32Array {
    return this.#floats('value')
  }

  get masked(): boolean {
    return this.hidden.some((one) => one !== 0)
  }

  get biased(): boolean {
    return this.bias.some((one) => one !== 0)
  }

  key(key: number): Float32Array {
    return this.keys.subarray(key * this.wide, (key + 1) * this.wide)
  }

  value(key: number): Float32Array {
    return this.values.subarray(key * this.deep, (key + 1) * this.deep)
  }

  /** Query times key, number by number; their sum is the score. */
  products(key: number): Float64Array {
    const other = this.key(key)
    return Float64Array.from(this.query, (one, at) => one * other[at]!)
  }

  /** tanh(q + k), number by number: what additive attention scores. */
  bent(key: number): Float64Array {
    const other = this.key(key)
    return Float64Array.from(this.query, (one, at) => Math.tanh(one + other[at]!))
  }

  /** What a key adds to the context: its value, times its weight. */
  part(key: number, weight: ArrayLike<number> = this.weight): Float64Array {
    return Float64Array.from(this.value(key), (one) => one * weight[key]!)
  }

  /** What every key adds to the context, key by key. */
  parts(weight: ArrayLike<number>): Float64Array {
    return Float64Array.from(this.values, (one, at) => one * weight[Math.floor(at / this.deep)]!)
  }

  /** The values, mixed by such weights. */
  mixed(weight: ArrayLike<number>): Float64Array {
    const found = new Float64Array(this.deep)
    for (let key = 0; key < this.size; key++) this.part(key, weight).forEach((part, at) => (found[at]! += part))
    return found
  }

  /** What the softmax is taken of: −∞ where nothing is to be seen. */
  entering(without: Without): Float64Array {
    return Float64Array.from(this.score, (score, key) => {
      if (this.hidden[key] && !without.mask) return -Infinity
      return without.scaling ? score + this.bias[key]! : this.scaled[key]!
    })
  }

  /** The weights without what the reader took away. */
  altered(without: Without): Float32Array {
    return without.scaling ? this.#floats('unscaled') : without.mask ? this.#floats('unmasked') : this.weight
  }
}

/** The weights as they would be if the scores were so many times as large: exact where nothing but scores entered the softmax. */
export function sharpened(weight: ArrayLike<number>, times: number): Float64Array {
  const found = Float64Array.from(weight, (one) => one ** times)
  const all = sum(found)
  return found.map((one) => one / (all || 1))
}

/** Of `weight_LHK` the head whose row changes most without scaling: by how much of it goes elsewhere. */
export function changesMost(weight: ArrayLike<number>, heads: number, keys: number, divisor: number): { layer: number; head: number; moved: number } {
  let best = { layer: 1, head: 1, moved: -1 }
  for (let at = 0; at * keys < weight.length; at++) {
    const row = Float64Array.from({ length: keys }, (_, key) => weight[at * keys + key]!)
    const other = sharpened(row, divisor)
    const moved = sum(row.map((one, key) => Math.abs(one - other[key]!))) / 2
    if (moved > best.moved) best = { layer: Math.floor(at / heads) + 1, head: (at % heads) + 1, moved }
  }
  return best
}

/** The cosine of the angle between two vectors; 0 where one is nothing. */
export function cosine(one: ArrayLike<number>, other: ArrayLike<number>): number {
  const dot = (a: ArrayLike<number>, b: ArrayLike<number>) => sum(Float64Array.from({ length: a.length }, (_, at) => a[at]! * b[at]!))
  return dot(one, other) / (Math.sqrt(dot(one, one) * dot(other, other)) || 1)
}

export function sum(data: ArrayLike<number>): number {
  let found = 0
  for (let at = 0; at < data.length; at++) found += data[at]!
  return found
}

export function exponentials(data: ArrayLike<number>): Exponentials {
  const most = Math.max(...Array.from(data))
  const shift = Number.isFinite(most) && Math.abs(most) > LEGIBLE ? most : 0
  const found = Float64Array.from(data, (one) => Math.exp(one - shift))
  return { data: found, sum: sum(found), shift }
}

/** The places of the largest, the largest first. */
export function largest(data: ArrayLike<number>, most: number): number[] {
  return Array.from({ length: data.length }, (_, at) => at)
    .sort((a, b) => data[b]! - data[a]! || a - b)
    .slice(0, most)
}

export const POINTERS = /^(it|he|she|they|them|him|its|er|sie|es|ihn|ihm|il|elle|lui|ella|él)$/i

/** A token worth looking at first: one that stands for another word, else one in the middle. */
export function telling(tokens: readonly Token[]): number {
  const plain = tokens.flatMap((token, place) => (token.special ? [] : [place]))
  const words = plain.filter((place) => /\p{L}/u.test(tokens[place]!.text))
  const known = words.slice(1).find((place) => POINTERS.test(tokens[place]!.text.replace(/[▁Ġ\s]/g, '')))
  const among = words.length ? words : plain
  return known ?? among[Math.floor(among.length / 2)] ?? 0
}

/** A number with so many places behind the point. */
export function places(value: number, count = 2): string {
  if (value === -Infinity) return '−∞'
  const found = value.toFixed(count)
  return (Number(found) === 0 ? found.replace('-', '') : found).replace('-', '−')
}
