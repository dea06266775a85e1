/** What each sub-layer adds to the residual stream, and what would be predicted after each layer. */

import { count, percent } from './numbers'
import type { Payload } from './payload'
import type { Stack } from './types'

export interface LayersValues {
  stack: Stack
  stacks: Stack[]
  norm_place: 'pre' | 'post'
  tokens: string[]
  /** Layer, counted from 1, and sub-layer, first to last. */
  parts: [number, 'attention' | 'cross' | 'feedforward'][]
  /** The most probable piece after each layer, at each token; null: this stack predicts no pieces. */
  lens: string[][] | null
}

export const PARTS = { attention: 'self-attention', cross: 'encoder–decoder attention', feedforward: 'feed-forward' } as const

export interface Added {
  layer: number
  name: string
  /** Of what is added, over that of the stream before it. */
  length: number
  /** Of both: 1 the same way, 0 at right angles, −1 against it. */
  cosine: number
}

/** The sub-layers, of one token or of the mean of all. */
export function added({ values, arrays }: Payload<LayersValues>, token: number | null): Added[] {
  const width = values.tokens.length
  const of = (name: string, row: number) => {
    const data = arrays[name]!.data.subarray(row * width, (row + 1) * width)
    if (token !== null) return data[token]!
    let sum = 0
    for (const value of data) sum += value
    return sum / width
  }
  return values.parts.map(([layer, part], row) => ({ layer, name: PARTS[part], length: of('length', row), cosine: of('cosine', row) }))
}

export interface Guess {
  piece: string
  probability: number
  /** The piece that the last layer finds most probable: how probable it is here, and its rank, from 1. */
  own: number
  rank: number
}

/** A guess in a sentence. */
export function toldGuess({ piece, probability, own, rank }: Guess, layer: number, token: string): string {
  return `At “${token}”, after layer ${layer}: ${piece}, ${percent(probability)}. What the last layer finds most probable has ${percent(own)} here, rank ${count(rank)}.`
}

/** The guesses after each layer, the last layer first. */
export function guesses({ values, arrays }: Payload<LayersValues>): { layer: number; row: Guess[] }[] {
  const width = values.tokens.length
  const at = (name: string, place: number) => arrays[name]!.data[place]!
  return (values.lens ?? [])
    .map((pieces, layer) => ({
      layer: layer + 1,
      row: pieces.map((piece, token) => {
        const place = layer * width + token
        return { piece, probability: at('best', place), own: at('own', place), rank: at('rank', place) }
      }),
    }))
    .reverse()
}
