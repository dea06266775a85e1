/** What a language model goes on with behind a text. */

import { write } from './api'
import type { Asked, LookValues, WrittenToken } from './types'

/** So many tokens it is asked for at most. */
export const MOST = 40

/** The mark at which writing ends: no piece of a text. */
export function ends(piece: string): boolean {
  return /^<\/?s>$/.test(piece)
}

/** The pieces without the mark at the end. */
export function spoken<T extends { piece: string }>(tokens: readonly T[]): T[] {
  const end = tokens.findIndex(({ piece }) => ends(piece))
  return tokens.slice(0, end < 0 ? tokens.length : end)
}

/** The same, no more of them than the model can read behind the text. */
export function within<T extends { piece: string }>(tokens: readonly T[], { source }: Pick<LookValues, 'source'>, longest: number): T[] {
  return spoken(tokens).slice(0, Math.max(0, longest - source.length))
}

/** Ask a model how it goes on by itself. */
export async function goneOn(asked: Asked, signal: AbortSignal): Promise<WrittenToken[]> {
  const tokens: WrittenToken[] = []
  await write({ ...asked, most: MOST }, (token) => tokens.push(token), signal)
  return tokens
}

/** Where writing stopped by itself; null: it did not. */
export function ending(tokens: readonly { piece: string; probability: number }[]): { piece: string; probability: number } | null {
  const last = tokens.at(-1)
  return last && ends(last.piece) ? { piece: last.piece, probability: last.probability } : null
}
