/** A head made small enough to be one of many pictures. */

/** Rows and columns of a small picture. */
export const MOST = 64

/** At most so many rows and columns: a cell holds what its queries give to its keys, on average; the largest is 255. */
export function small(data: ArrayLike<number>, rows: number, columns: number, most = MOST): { data: Uint8Array; rows: number; columns: number } {
  const [high, wide] = [Math.min(rows, most), Math.min(columns, most)]
  const sums = new Float64Array(high * wide)
  const many = new Float64Array(high)
  for (let row = 0; row < rows; row++) {
    const to = part(row, rows, high)
    many[to]! += 1
    for (let column = 0; column < columns; column++) sums[to * wide + part(column, columns, wide)]! += data[row * columns + column]!
  }
  let largest = 0
  for (let at = 0; at < sums.length; at++) largest = Math.max(largest, (sums[at]! /= many[Math.floor(at / wide)]!))
  return { data: Uint8Array.from(sums, (value) => Math.round((value / (largest || 1)) * 255)), rows: high, columns: wide }
}

/** Which of `parts` parts of as equal size as can be a place falls into; part i begins at ⌊i · size / parts⌋. */
function part(at: number, size: number, parts: number): number {
  return Math.floor(((at + 1) * parts - 1) / size)
}
