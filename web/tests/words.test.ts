import { describe, expect, it } from 'vitest'
import { longest, nextExample, shared, spoken } from '../src/lib/words'

describe('where to begin', () => {
  it('is the longest piece, a space in front not counted', () => {
    expect(longest(['▁▁▁▁a', 'bcd', ' ef'])).toBe(1)
    expect(longest(['<0xEF>', '▁a', '...'])).toBe(1)
    expect(longest([])).toBe(0)
  })

  it('is the longest that both sentences have', () => {
    expect(shared(['the', ' bank', ' robbed', '.'], ['a', ' river', ' bank', '.'])).toEqual([1, 2])
  })

  it('is the longest of each where they share no word', () => {
    expect(shared(['I', ' sleep', '.'], ['you', ' go', '.'])).toEqual([1, 0])
  })

  it('is the next example, after the last the first again', () => {
    expect(nextExample(['a', 'b', 'c'], 'b')).toBe('c')
    expect(nextExample(['a', 'b', 'c'], 'c')).toBe('a')
    expect(nextExample(['a', 'b', 'c'], 'other')).toBe('a')
    expect(nextExample([], 'other')).toBe('other')
  })
})

it('gaps say nothing', () => {
  expect(spoken('[MASK] cow couldn[MASK] cross the [MASK].')).toBe('cow couldn cross the .')
})
