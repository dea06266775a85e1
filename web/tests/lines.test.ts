import { expect, it } from 'vitest'
import { even } from '../src/draw/lines'
import type { Label } from '../src/lib/look'

it('a head is even where no line would be drawn', () => {
  const labels = (count: number) => Array.from({ length: count }, (_, place): Label => ({ text: 'a', name: 'a', special: false, places: [place] }))
  const picture = (rows: number, columns: number, data: number[]) => ({ rows: labels(rows), columns: labels(columns), data: Float32Array.from(data) })
  expect(even(picture(2, 20, new Array(40).fill(1 / 20)))).toBe(true)
  expect(even(picture(2, 2, [0.5, 0.5, 0.5, 0.5]))).toBe(false)
  // one line in one row is a line
  expect(even(picture(2, 20, [...new Array(20).fill(1 / 20), ...new Array(19).fill(0.04), 0.24]))).toBe(false)
})
