/** The head to begin with, where nobody has chosen one. */

import type { Look } from './look'
import { largest } from './look'
import type { Kind } from './types'

/** A piece that begins with a letter or a digit: “'t” is none. */
const WORD = /^[▁Ġ\s]*[\p{L}\p{N}]/u

/**
 * The head whose words look most sharply at a word: of what each word gives, the most that goes to one word, on average. The
 * word itself does not count where both are the same, nor do punctuation and special tokens. Null: its weights are not there.
 */
export function opening(look: Look, kind: Kind, same: boolean): { layer: number; head: number } | null {
  const { queries, keys, layers, heads } = look.sides(kind)
  const words = (side: typeof keys) => look.labels(side, false).flatMap(({ special, text }, place) => (!special && WORD.test(text) ? [place] : []))
  const [rows, columns, width] = [words(queries), words(keys), look.tokens(keys).length]
  let [found, most] = [null as { layer: number; head: number } | null, 0]
  for (let layer = 1; layer <= layers; layer++)
    for (let head = 1; head <= heads; head++) {
      const weights = look.weights({ kind, merge: 'head', layer, head })
      if (!weights) return null
      const sharp = (row: number) => largest(Float32Array.from(columns, (column) => (same && column === row ? 0 : weights[row * width + column]!)))
      const mean = rows.reduce((sum, row) => sum + sharp(row), 0) / (rows.length || 1)
      if (mean > most) [found, most] = [{ layer, head }, mean]
    }
  return found
}
