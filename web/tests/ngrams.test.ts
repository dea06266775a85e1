import { describe, expect, it } from 'vitest'
import { lead, type NGramShares } from '../src/lib/ngrams'

const shares: NGramShares = {
  labels: ['good', 'bad'],
  whole: [3, 1],
  ngrams: [2, -1],
  bias: [0.5, 0],
  words: [
    ['nice', [1.75, -1.25]],
    ['day', [-0.25, 0.25]],
  ],
}

describe('what n-grams add', () => {
  it('is told against the next label', () => {
    const found = lead(shares, 0, false)!
    expect(found).toEqual({ label: 'good', against: 'bad', reader: -1, ngrams: 3, bias: 0.5, words: [['nice', 3], ['day', -0.5]] })
    expect(found.words.reduce((sum, [, part]) => sum + part, found.bias)).toBeCloseTo(found.ngrams)
    expect(found.reader + found.ngrams).toBeCloseTo(3 - 1)
    expect(lead(shares, 1, false)!.ngrams).toBe(-3)
  })

  it('stands alone where a text may have several labels', () => {
    expect(lead(shares, 1, true)).toMatchObject({ label: 'bad', against: null, reader: 2, ngrams: -1 })
  })

  it('is nothing where there is no such label', () => {
    expect(lead(shares, 5, false)).toBeNull()
  })
})
