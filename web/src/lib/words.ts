/** Words as vectors: neighbours, a map, and paths through the layers. */

import type { Token } from './types'

export interface Piece {
  id: number
  piece: string
}

export interface NearValues extends Piece {
  pieces: Piece[]
  near: [id: number, piece: string, cosine: number][]
}

export interface MapValues {
  ids: number[]
  pieces: string[]
  share: number
  marked: number[]
}

export interface DriftValues {
  tokens: Token[][]
  share: number
  alike: number[] | null
}

/** A token of one of two sentences: which, and its place. */
export type Spot = [scene: number, place: number]

const bare = (text: string) => text.replace(/[▁Ġ\s]/g, '')

const word = (text: string) => /^[\p{L}\p{N}]/u.test(text)

/** Where to begin: the longest piece, of a word if there is one. */
export function longest(pieces: readonly string[]): number {
  const size = (piece: string) => bare(piece).length + (word(bare(piece)) ? 1000 : 0)
  let found = 0
  pieces.forEach((piece, at) => {
    if (size(piece) > size(pieces[found]!)) found = at
  })
  return found
}

/** What a text says, without its gaps. */
export function spoken(text: string): string {
  return text.replaceAll('[MASK]', ' ').replace(/\s+/g, ' ').trim()
}

/** A token that both sentences have, the longest, to be followed through both; otherwise the longest of each. */
export function shared(one: readonly string[], other: readonly string[]): [number, number] {
  let found: [number, number] | null = null
  let size = 0
  one.forEach((text, at) => {
    const there = other.findIndex((again) => bare(again) === bare(text))
    const now = bare(text).length
    if (there >= 0 && word(bare(text)) && now > size) [found, size] = [[at, there], now]
  })
  return found ?? [longest(one), longest(other)]
}

/** Of the model's examples the one behind this text. */
export function nextExample(examples: readonly string[], text: string): string {
  const at = examples.indexOf(text)
  return examples.length ? examples[(at + 1) % examples.length]! : text
}
