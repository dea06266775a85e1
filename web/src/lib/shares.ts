/** What attention says of each token beside what the gradient says. */

import type { Look, Shown } from './look'
import type { Kind } from './types'

/** Where the look of the last layer goes, the mean over its heads. */
export function lastLayer(look: Look): { shown: Shown; kind: Kind } | null {
  const kind = look.kinds.includes('cross') ? 'cross' : look.kinds[0]
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

/** Where the largest number above zero is; null: there is none. */
export function top(values: ArrayLike<number>): number | null {
  let [found, most] = [null as number | null, 0]
  for (let at = 0; at < values.length; at++) if (values[at]! > most) [found, most] = [at, values[at]!]
  return found
}
