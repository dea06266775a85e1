import { describe, expect, it } from 'vitest'
import { cosine, dot, mixed, named, nearest, parts, placeOf, sharpnessAt, shares, told, wordsOf } from '../src/lib/lookup'

describe('a soft dictionary', () => {
  it('compares', () => {
    expect(dot([1, 2, 3], [4, 5, 6])).toBe(32)
    expect(cosine([1, 0], [1, 1])).toBeCloseTo(Math.SQRT1_2, 12)
    expect(cosine([0, 0], [1, 1])).toBe(0)
  })
  it('shares are the softmax of sharpness times fit', () => {
    const [a, b] = shares([0.5, 0.25], 4)
    expect(a! / b!).toBeCloseTo(Math.E, 12)
    expect(a! + b!).toBeCloseTo(1, 12)
    expect(shares([0.1, 0.9, 0.3], 0)).toEqual([1 / 3, 1 / 3, 1 / 3])
    expect(shares([1, 0.9], 1e6)).toEqual([1, 0])
  })
  it('what is not known gets nothing', () => {
    expect(shares([null, 1, null], 3)).toEqual([0, 1, 0])
    expect(shares([null, null], 3)).toEqual([0, 0])
    expect(shares([], 3)).toEqual([])
  })
  it('mixes numbers and colours', () => {
    expect(mixed([[10], [20]], [0.25, 0.75])).toEqual([17.5])
    expect(named(mixed([parts('#ff0000'), parts('#0000ff')], [0.5, 0.5]))).toBe('#800080')
    expect(parts('#1a4fc4')).toEqual([26, 79, 196])
  })
  it('the slider goes from nothing to a hundred', () => {
    expect([0, 1 / 3, 2 / 3, 1].map(sharpnessAt).map((one) => Math.round(one * 1e6) / 1e6)).toEqual([0, 1, 10, 100])
    for (const sharpness of [0.2, 4, 100]) expect(sharpnessAt(placeOf(sharpness))).toBeCloseTo(sharpness, 9)
  })
  it('begins with the longest words of a text, in their order, and asks for one more', () => {
    expect(wordsOf(['The', 'animal', 'did', 'not', 'cross', 'the', 'street', ',', 'a'], 3)).toEqual({ keys: ['animal', 'cross', 'street'], query: 'The' })
    expect(wordsOf(['a', 'b', '1'])).toBeNull()
  })
  it('says who gets how much', () => {
    expect(told(['A', 'B', 'C', 'D'], [0.1, 0.61, 0.28, 0.01], 2)).toBe('0.61 of the value of B, 0.28 of C and 0.11 of the others')
    expect(told(['A', 'B'], [0.003, 0.997])).toBe('1.00 of the value of B')
  })
  it('finds the word that is nearest to a key', () => {
    const vectors: Record<string, number[]> = { king: [1, 0], tree: [0, 1], queen: [0.9, 0.2], bush: [0.5, 0.6] }
    expect(nearest(['bush', 'queen', 'unknown'], ['king', 'tree'], (word) => vectors[word])).toBe('queen')
    expect(nearest(['unknown'], ['king'], (word) => vectors[word])).toBeNull()
  })
})
