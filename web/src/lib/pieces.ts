/** Pieces of words as people read them. */

import type { Token } from './types'

/** A piece without the sign of the space before it. */
export function clean(text: string): string {
  const found = text.replace(/[▁Ġ]/g, ' ').trim()
  return found || '␣'
}

/** The same, with a dot before what goes on with a word. */
export function named(tokens: readonly Token[], place: number): string {
  const [token, before] = [tokens[place]!, tokens[place - 1]]
  const joined = before && !before.special && !token.special && token.start === before.end && /^[\p{L}\p{N}]/u.test(token.text)
  return joined && /[\p{L}\p{N}]$/u.test(before.text) ? `·${clean(token.text)}` : clean(token.text)
}
