import { describe, expect, it } from 'vitest'
import { content, longest, nextExample, pieceOf, shared, spoken } from '../src/lib/words'

describe('where to begin', () => {
  it('is the longest piece, a space in front not counted', () => {
    expect(longest(['▁▁▁▁a', 'bcd', ' ef'])).toBe(1)
    expect(longest(['<0xEF>', '▁a', '...'])).toBe(1)
    expect(longest([])).toBe(0)
  })

  it('is the longest that both sentences have', () => {
    expect(shared(['the', ' bank', ' robbed', '.'], ['a', ' river', ' bank', ' robbed'])).toEqual([2, 3])
    expect(shared(['the', ' river', ' bank', '.'], ['a', ' money', ' bank', '.'])).toEqual([2, 2])
  })

  it('is the longest of each where they share no word', () => {
    expect(shared(['I', ' sleep', '.'], ['ye', 'llow', '.'])).toEqual([1, 1])
  })

  it('is the last word of each where those differ', () => {
    expect(shared([' was', ' too', ' tired', '.'], [' was', ' wide', '.', ''])).toEqual([2, 1])
    // a word in two pieces is followed by neither
    expect(shared([' was', ' exha', 'usted', '.'], [' is', ' wide', '.'])).toEqual([0, 1])
  })

  it('is a thing rather than the longest piece', () => {
    const pieces = ['▁The', '▁animal', '▁didn', "'t", '▁cross', '▁the', '▁stre', 'et', '▁because', '▁it', '▁was', '▁tired', '.']
    expect(content(pieces)).toBe(1)
    expect(content(pieces.slice(8))).toBe(0)
    expect(content([])).toBe(0)
  })

  it('is the piece that is kept, of several that are alike the same one', () => {
    const tokens = ['<s>', '▁the', '▁cat', '▁the', '▁dog'].map((text) => ({ text }))
    const pieces = ['▁the', '▁cat', '▁the', '▁dog']
    expect([1, 2, 3, 4].map((at) => pieceOf(pieces, tokens, at))).toEqual([0, 1, 2, 3])
    expect(pieceOf(pieces, tokens, 0)).toBeNull()
    expect(['▁es', '▁It', '▁estate'].map((text) => pieceOf([text], [{ text }], 0))).toEqual([null, null, 0])
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
