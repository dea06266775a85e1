import { describe, expect, it } from 'vitest'
import { byWord, type Label, merged, rollout, strongest } from '../src/lib/look'

const label = (text: string, ...places: number[]): Label => ({ text, name: text, special: false, places })

/** Product of two square matrices, the plain way. */
function times(a: number[][], b: number[][]): number[][] {
  return a.map((row) => b[0]!.map((_, column) => row.reduce((sum, value, middle) => sum + value * b[middle]![column]!, 0)))
}

describe('heads merged', () => {
  const one = Float32Array.from([0.5, 0.5, 1, 0])
  const two = Float32Array.from([0, 1, 0.25, 0.75])

  it('are their mean or their maximum', () => {
    expect([...merged([one, two], 'mean')]).toEqual([0.25, 0.75, 0.625, 0.375])
    expect([...merged([one, two], 'max')]).toEqual([0.5, 1, 1, 0.75])
  })

  it('roll out as products of half identity, half mean', () => {
    const half = (head: Float32Array) => [
      [(1 + head[0]!) / 2, head[1]! / 2],
      [head[2]! / 2, (1 + head[3]!) / 2],
    ]
    const wanted = times(half(two), half(one)).flat()
    rollout([[one], [two]], 2).forEach((value, at) => expect(value).toBeCloseTo(wanted[at]!, 6))
  })
})

describe('weights between words', () => {
  it('are summed over keys and averaged over queries, so that rows still sum to one', () => {
    const data = Float32Array.from([0.1, 0.2, 0.7, 0.5, 0.25, 0.25])
    const found = byWord(data, [label('both', 0, 1)], [label('first two', 0, 1), label('last', 2)], 3)
    expect(found[0]).toBeCloseTo((0.1 + 0.2 + 0.5 + 0.25) / 2, 6)
    expect(found[0]! + found[1]!).toBeCloseTo(1, 6)
  })
})

describe('the strongest columns', () => {
  it('come first, ties by place', () => {
    const picture = { rows: [label('a', 0), label('b', 1)], columns: [label('x', 0), label('y', 1), label('z', 2)], data: Float32Array.from([1, 0, 0, 0.25, 0.5, 0.25]) }
    expect(strongest(picture, 1, 3).map(({ column }) => column)).toEqual([1, 0, 2])
  })
})
