/** How two pictures of heads over the same tokens differ. */

import type { Picture } from './look'

export function sameTokens(one: Picture, other: Picture): boolean {
  const alike = (a: Picture['rows'], b: Picture['rows']) => a.length === b.length && a.every((label, at) => label.text === b[at]!.text)
  return alike(one.rows, other.rows) && alike(one.columns, other.columns)
}

/** What the second gives more than the first, cell by cell. */
export function more(first: Float32Array, second: Float32Array): Float32Array {
  return Float32Array.from(second, (value, at) => value - first[at]!)
}

/** The mean over the rows of their total variation distance: half of what is given elsewhere; 0: alike, 1: nothing shared. */
export function apart(first: Float32Array, second: Float32Array, rows: number): number {
  let sum = 0
  for (let at = 0; at < first.length; at++) sum += Math.abs(second[at]! - first[at]!)
  return rows ? sum / 2 / rows : 0
}
