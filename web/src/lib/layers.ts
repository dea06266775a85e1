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
  parts: [number, keyof typeof PARTS][]
  /** The most probable piece after each layer, at each token; null: this stack predicts no pieces. */
  lens: string[][] | null
}

export const PARTS = { attention: 'self-attention', recurrence: 'recurrence', cross: 'encoder–decoder attention', feedforward: 'feed-forward' } as const

export interface Added {
  layer: number
  name: string
  /** Of what is added, over that of the stream before it. */
  length: number
  /** Of both: 1 the same way, 0 at right angles, −1 against it. */
  cosine: number
}

/** The sub-layers, of one token. */
export function added({ values, arrays }: Payload<LayersValues>, token: number): Added[] {
  const of = (name: string, row: number) => arrays[name]!.data[row * values.tokens.length + token]!
  return values.parts.map(([layer, part], row) => ({ layer, name: PARTS[part], length: of('length', row), cosine: of('cosine', row) }))
}

/** The largest length of any sub-layer at any token, so that pictures of different tokens can be compared; at least 1, the stream's own. */
export function longest({ arrays }: Payload<LayersValues>): number {
  let most = 1
  for (const length of arrays['length']!.data) most = Math.max(most, length)
  return most
}

/** What is written behind each place, where the stack writes. */
export function nexts({ values }: Payload<LayersValues>, writes: boolean): string[] | null {
  const last = values.lens?.at(-1)
  return writes && last ? values.tokens.map((_, at) => values.tokens[at + 1] ?? last[at]!) : null
}

export interface Guess {
  piece: string
  probability: number
  /** The piece that the last layer finds most probable: how probable it is here, and its rank, from 1. */
  final: string
  own: number
  rank: number
}

/** A guess in a sentence. */
export function toldGuess({ piece, probability, final, own, rank }: Guess, layer: number, token: string, shown: (piece: string) => string): string {
  const here = `At “${token}”, after layer ${layer}: ${shown(piece)}, ${percent(probability)}`
  return piece === final ? `${here}; so it is after the last layer.` : `${here}. After the last layer it is ${shown(final)}, which has ${percent(own)} here, rank ${count(rank)}.`
}

/** The guesses after each layer, the first layer first. */
export function guesses({ values, arrays }: Payload<LayersValues>): { layer: number; row: Guess[] }[] {
  const width = values.tokens.length
  const at = (name: string, place: number) => arrays[name]!.data[place]!
  return (values.lens ?? []).map((pieces, layer) => ({
    layer: layer + 1,
    row: pieces.map((piece, token) => {
      const place = layer * width + token
      return { piece, probability: at('best', place), final: values.lens!.at(-1)![token]!, own: at('own', place), rank: at('rank', place) }
    }),
  }))
}
