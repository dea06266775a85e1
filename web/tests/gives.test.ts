import { describe, expect, it } from 'vitest'
import { gives } from '../src/lib/gives'
import { type Label, Look } from '../src/lib/look'
import type { LookValues } from '../src/lib/types'

const label = (text: string, ...places: number[]): Label => ({ text, name: text, special: false, places })

describe('what heads give from a token', () => {
  it('is the largest share, of words the sum of their pieces', () => {
    const weights = Float32Array.from([0.5, 0.25, 0.25, 0.1, 0.2, 0.7])
    const pieces = [label('a', 0), label('b', 1), label('c', 2)]
    expect(gives(weights, 2, 3, pieces).map(({ layer, head, label, weight }) => [layer, head, label.text, Number(weight.toFixed(4))])).toEqual([
      [1, 1, 'a', 0.5],
      [1, 2, 'c', 0.7],
    ])
    const words = [label('ab', 0, 1), label('c', 2)]
    expect(gives(weights, 1, 3, words).map(({ layer, head, label }) => [layer, head, label.text])).toEqual([
      [1, 1, 'ab'],
      [2, 1, 'c'],
    ])
  })
})

const array = (shape: number[], data: number[]) => ({ shape, data: Float32Array.from(data) })

/** Two layers of one head, two queries and two keys. */
function look(): Look {
  const weights = [0.75, 0.25, 0.5, 0.5, 0.125, 0.875, 1, 0]
  const arrays = {
    'weights.encoder': array([2, 1, 2, 2], weights),
    'largest.encoder': array([2, 1], [0.5, 1]),
    'small.encoder': { shape: [2, 1, 1, 2], data: Uint8Array.from([255, 100, 255, 10]) },
  }
  return new Look({ values: { kinds: {} } as unknown as LookValues, arrays })
}

describe('a row of all heads', () => {
  it('is that of one token, or the mean of several', () => {
    expect([...look().row('encoder', [1])!]).toEqual([0.5, 0.5, 1, 0])
    expect([...look().row('encoder', [0, 1])!]).toEqual([0.625, 0.375, 0.5625, 0.4375])
    expect(look().row('cross', [0])).toBeNull()
  })
})

describe('small pictures', () => {
  it('share one scale: full ink is the largest cell of all heads', () => {
    expect(look().full('encoder')).toBe(1)
    expect([...look().small('encoder', 1, 1).data]).toEqual([128, 50])
    expect([...look().small('encoder', 2, 1).data]).toEqual([255, 10])
    expect(look().largest('encoder', 1, 1)).toBe(0.5)
  })
})
