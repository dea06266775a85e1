import { describe, expect, it } from 'vitest'
import { along, best, extent, measured, norms, type Measured } from '../src/lib/ideas'

const model = (given: Partial<Measured>): Measured => ({
  seed: 1, steps: 100, parameters: 9, curve: [], layers: [], norms: [], diverged: null, scores: null, entropy: null, written: [], ...given,
})
const layers = ['encoder', 'encoder.layers.0']
const whole = model({ layers, norms: [[50, [1, 100]], [100, [2, 10]]], curve: [[10, 3], [20, 1], [30, 2]] })

describe('ideas', () => {
  it('come in the order of the paper, those that were measured', () => {
    expect(measured({ sources: [], references: [], models: { whole, norm: whole, other: whole, positions: whole } })).toEqual(['positions', 'norm'])
  })

  it('have gradients beside each other where both were measured', () => {
    const without = model({ layers: ['encoder.layers.0'], norms: [[100, [0.5]], [150, [7]]] })
    expect(norms(whole, without)).toEqual([{ step: 100, rows: [['encoder, rest', 2, null], ['encoder 1', 10, 0.5]] }])
    expect(extent(norms(whole, without))).toEqual([0.5, 10])
    expect(extent([])).toEqual([0.1, 1])
  })

  it('lie on an axis of powers', () => {
    expect([1, 10, 100].map((one) => along(one, [1, 100]))).toEqual([0, 0.5, 1])
    expect(along(0, [1, 100])).toBe(0)
    expect(along(3, [3, 3])).toBe(0)
  })

  it('are judged by the least loss', () => {
    expect(best(whole)).toBe(1)
    expect(best(model({}))).toBeNull()
  })
})
