import { describe, expect, it } from 'vitest'
import { apart, more, sameTokens } from '../src/lib/apart'
import type { Label } from '../src/lib/look'
import { chance } from '../src/lib/order'

/** Rows that sum to one. */
function weights(rows: number, columns: number, seed: number): Float32Array {
  const random = chance(seed)
  const found = Float32Array.from({ length: rows * columns }, random)
  for (let row = 0; row < rows; row++) {
    const one = found.subarray(row * columns, (row + 1) * columns)
    const sum = one.reduce((a, b) => a + b)
    one.forEach((value, at) => (one[at] = value / sum))
  }
  return found
}

describe('how far apart two heads are', () => {
  it('is nothing for the same and one where no token is shared', () => {
    const one = weights(3, 4, 1)
    expect(apart(one, one, 3)).toBe(0)
    expect(apart(Float32Array.from([1, 0, 0, 0.5, 0.5, 0]), Float32Array.from([0, 1, 0, 0, 0, 1]), 2)).toBe(1)
  })

  it('is by hand', () => {
    // rows (0.5, 0.5) and (0.75, 0.25): a quarter goes elsewhere; the second rows are the same
    expect(apart(Float32Array.from([0.5, 0.5, 1, 0]), Float32Array.from([0.75, 0.25, 1, 0]), 2)).toBeCloseTo(0.125, 7)
  })

  it('is the mean of the largest differences that any set of keys shows', () => {
    const [rows, columns] = [5, 6]
    const [a, b] = [weights(rows, columns, 2), weights(rows, columns, 3)]
    let sum = 0
    for (let row = 0; row < rows; row++) {
      let most = 0
      for (let set = 0; set < 2 ** columns; set++) {
        let difference = 0
        for (let key = 0; key < columns; key++) if (set & (1 << key)) difference += a[row * columns + key]! - b[row * columns + key]!
        most = Math.max(most, difference)
      }
      sum += most
    }
    expect(apart(a, b, rows)).toBeCloseTo(sum / rows, 6)
    expect(apart(b, a, rows)).toBeCloseTo(sum / rows, 6)
  })

  it('is nothing without rows', () => {
    expect(apart(new Float32Array(), new Float32Array(), 0)).toBe(0)
  })
})

it('what the second gives more is above zero', () => {
  expect([...more(Float32Array.from([0.25, 0.75]), Float32Array.from([1, 0]))]).toEqual([0.75, -0.75])
})

it('tokens are the same if rows and columns say the same', () => {
  const labels = (texts: string): Label[] => [...texts].map((text, place) => ({ text, name: text, special: false, places: [place] }))
  const picture = (rows: string, columns: string) => ({ rows: labels(rows), columns: labels(columns), data: new Float32Array() })
  expect(sameTokens(picture('ab', 'xyz'), picture('ab', 'xyz'))).toBe(true)
  expect(sameTokens(picture('ab', 'xyz'), picture('ab', 'xyw'))).toBe(false)
  expect(sameTokens(picture('ab', 'xyz'), picture('abc', 'xyz'))).toBe(false)
})
