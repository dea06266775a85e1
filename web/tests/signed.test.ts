import { describe, expect, it } from 'vitest'
import { reach, step, steps } from '../src/lib/signed'

function luminance(rgba: ArrayLike<number>, at: number): number {
  const linear = (value: number) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4)
  return 0.2126 * linear(rgba[at * 4]!) + 0.7152 * linear(rgba[at * 4 + 1]!) + 0.0722 * linear(rgba[at * 4 + 2]!)
}

describe('colours below and above zero', () => {
  it('grow away from the paper on both sides', () => {
    for (const theme of ['light', 'dark'] as const) {
      const sign = theme === 'light' ? -1 : 1
      for (let at = 0; at < 127; at++) {
        expect(sign * (luminance(steps(theme), 127 - at - 1) - luminance(steps(theme), 127 - at))).toBeGreaterThanOrEqual(0)
        expect(sign * (luminance(steps(theme), 127 + at + 1) - luminance(steps(theme), 127 + at))).toBeGreaterThanOrEqual(0)
      }
    }
  })

  it('are about as strong below as above', () => {
    for (const theme of ['light', 'dark'] as const)
      for (const at of [32, 64, 96, 127]) {
        const [a, b] = [luminance(steps(theme), 127 - at) + 0.05, luminance(steps(theme), 127 + at) + 0.05]
        expect(Math.max(a, b) / Math.min(a, b)).toBeLessThan(1.5)
      }
  })

  it('are told by rust and blue', () => {
    const [r, , b] = steps('light').subarray(40 * 4, 40 * 4 + 3)
    expect(r!).toBeGreaterThan(b!)
    const [red, , blue] = steps('light').subarray(214 * 4, 214 * 4 + 3)
    expect(blue!).toBeGreaterThan(red!)
  })
})

it('steps go from −1 to 1, with zero in the middle', () => {
  expect([-2, -1, 0, 1, 2, NaN].map(step)).toEqual([0, 0, 127, 254, 254, 127])
})

it('reach is the largest distance from zero', () => {
  expect(reach([0.5, -2, 1])).toBe(2)
  expect(reach([])).toBe(0)
})
