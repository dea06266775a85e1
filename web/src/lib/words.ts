/** Words as vectors: neighbours, a map, and paths through the layers. */

import { POINTERS } from './equation'
import { ARTICLES } from './order'
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
  /** Pieces that no training text has, whose rows were never trained; nothing: that was not counted. */
  unseen?: number | null
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

/** Whether a piece is a word by itself: neither does it go on with one, nor does the next. */
function whole(pieces: readonly string[], place: number): boolean {
  const begins = (at: number) => at === 0 || at >= pieces.length || /^[▁Ġ\s]/.test(pieces[at]!) || !word(bare(pieces[at]!))
  return word(bare(pieces[place]!)) && begins(place) && begins(place + 1)
}

/**
 * Where to begin in a sentence: at the longest word in one piece that stands behind an article, for that is likely to name a
 * thing; without one at the longest piece.
 */
export function content(pieces: readonly string[]): number {
  const things = pieces.flatMap((piece, at) => (at > 0 && whole(pieces, at) && !ARTICLES.test(bare(piece)) && ARTICLES.test(bare(pieces[at - 1]!)) ? [at] : []))
  if (!things.length) return longest(pieces)
  return things.reduce((best, at) => (bare(pieces[at]!).length > bare(pieces[best]!).length ? at : best))
}

/**
 * The piece that a kept token is, by its text and by how many of the same text stand before it. Null: it is not there, or a
 * pronoun, whose neighbours tell little.
 */
export function pieceOf(pieces: readonly string[], tokens: readonly { text: string }[], place: number): number | null {
  const { text } = tokens[place]!
  if (POINTERS.test(bare(text))) return null
  const nth = tokens.slice(0, place).filter((token) => bare(token.text) === bare(text)).length
  return pieces.flatMap((piece, at) => (bare(piece) === bare(text) ? [at] : []))[nth] ?? null
}

/** What a text says, without its gaps. */
export function spoken(text: string): string {
  return text.replaceAll('[MASK]', ' ').replace(/\s+/g, ' ').trim()
}

/**
 * Two tokens to be followed through both sentences: the last word of each where those differ; else the longest that both
 * have; else the longest of each.
 */
export function shared(one: readonly string[], other: readonly string[]): [number, number] {
  const last = (pieces: readonly string[]) => pieces.findLastIndex((_, at) => whole(pieces, at))
  const [a, b] = [last(one), last(other)]
  if (a >= 0 && b >= 0 && bare(one[a]!) !== bare(other[b]!)) return [a, b]
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
