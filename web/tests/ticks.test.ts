import { expect, it } from 'vitest'
import { tickName, ticks } from '../src/lib/ticks'

it('ticks are round numbers within the bounds', () => {
  expect(ticks(0, 1, 5)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1])
  expect(ticks(-1, 1, 4)).toEqual([-1, -0.5, 0, 0.5, 1])
  expect(ticks(-63, 63, 3)).toEqual([-50, 0, 50])
  expect(ticks(0, 127, 8)).toEqual([0, 20, 40, 60, 80, 100, 120])
  expect(ticks(2, 2, 3)).toEqual([2])
})

it('there are about as many as wanted, for any bounds', () => {
  for (const [least, largest] of [[0.0012, 0.0031], [-7e5, 3e6], [-4.24, 0.5], [99.1, 99.9]] as const) {
    const found = ticks(least, largest, 5)
    expect(found.length).toBeGreaterThanOrEqual(2)
    expect(found.length).toBeLessThanOrEqual(6)
    for (const tick of found) expect(tick >= least - 1e-9 && tick <= largest + 1e-9 * Math.abs(largest)).toBe(true)
  }
})

it('a tick is named with a true minus', () => {
  expect(tickName(-0.5)).toBe('−0.5')
  expect(ticks(-0.3, 0.3, 3).map(tickName)).toEqual(['−0.2', '0', '0.2'])
})
