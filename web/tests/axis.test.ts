import { describe, expect, it } from 'vitest'
import { linear, logarithmic, round, share, tick, upTo } from '../src/lib/axis'

const spans: [number, number][] = [[0, 1], [2.37, 8.9], [-3, 4], [0.0021, 0.0034], [99, 101], [0, 123456], [5, 5], [0, 0], [1e-9, 3e-9]]

describe('axes', () => {
  it('are round, hold all numbers, and have few ticks', () => {
    for (const [low, high] of spans)
      for (const parts of [2, 4, 6]) {
        const axis = linear(low, high, parts)
        expect(axis.low).toBeLessThanOrEqual(low)
        expect(axis.high).toBeGreaterThanOrEqual(high)
        expect(axis.ticks.length).toBeLessThanOrEqual(parts + 1)
        expect(axis.ticks.length).toBeGreaterThan(1)
        const head = Number(axis.step.toExponential().split('e')[0])
        expect([1, 2, 5]).toContain(Math.round(head * 1e6) / 1e6)
        axis.ticks.forEach((one, at) => expect(one).toBeCloseTo(axis.low + at * axis.step, 9))
      }
  })

  it('by factors hold all numbers', () => {
    for (const [low, high] of [[0.02, 1], [1, 1], [0.3, 700], [2.1, 2.3], [1e-8, 1e3]] as const) {
      const axis = logarithmic(low, high, 3)
      expect(axis.low).toBeLessThanOrEqual(low * 1.0000001)
      expect(axis.high).toBeGreaterThanOrEqual(high * 0.9999999)
      expect(axis.high).toBeGreaterThan(axis.low)
      expect(axis.ticks.length).toBeLessThanOrEqual(5)
      expect(share(axis, Math.sqrt(axis.low * axis.high))).toBeCloseTo(0.5)
    }
  })

  it('up to a number end there', () => {
    const axis = upTo(1401, 7)
    expect(axis.high).toBe(1401)
    expect(axis.ticks).toEqual([0, 500, 1000])
    expect(share(axis, 1401)).toBe(1)
  })

  it('round up to 1, 2, 5', () => {
    expect([0.9, 1, 1.1, 2.3, 5, 6, 0.03].map(round)).toEqual([1, 1, 2, 5, 5, 10, 0.05])
  })

  it('name their ticks', () => {
    expect(tick(linear(0, 0.003, 2), 0.002)).toBe('0.002')
    expect(tick(linear(0, 12000, 3), 10000)).toBe('10,000')
    expect(tick(linear(0, 0.00000004, 2), 0.00000002)).toBe('2·10⁻⁸')
    expect(tick(linear(-1, 1, 2), -1)).toBe('−1')
    expect(tick(logarithmic(0.02, 1, 3), 0.02)).toBe('0.02')
  })
})
