import { describe, expect, it } from 'vitest'
import { apart, before, behind, clean, named, spot, unplaced } from '../src/lib/pieces'
import type { Token } from '../src/lib/types'

/** Tokens of pieces that stand end to end; those in brackets stand for no characters. */
function tokens(...pieces: string[]): Token[] {
  let end = 0
  return pieces.map((text) => {
    const special = /^[<[]/.test(text)
    const start = end
    end += special ? 0 : text.length
    return { text, start, end, special }
  })
}

const ROW = tokens('<s>', 'Die', '▁B', 'r', 'ü', 'cke', '▁', 'o', "'t", '.', '[MASK]', 'ing', '</s>')

describe('pieces', () => {
  it('are named one way, wherever they stand', () => {
    const names = ['<s>', 'Die', 'B', '·r', '·ü', '·cke', '␣', 'o', "'t", '.', '[MASK]', 'ing', '</s>']
    expect(ROW.map((_, place) => named(ROW, place))).toEqual(names)
    // a candidate for the place of a token has the name of that token
    expect(ROW.map(({ text }, place) => behind(before(ROW, place), text))).toEqual(names)
  })

  it('have no dot behind a gap in the characters', () => {
    const apart = [...tokens('cat'), { text: 's', start: 4, end: 5, special: false }]
    expect(named(apart, 1)).toBe('s')
  })

  it('of a table have one where they are no beginnings of words', () => {
    const name = unplaced(['▁Maus', 'r', 'The', '.', '2', '▁'])
    expect(['▁Maus', 'r', 'The', '.', '2', '▁'].map(name)).toEqual(['Maus', '·r', 'The', '.', '·2', '␣'])
    // letters as pieces have no signs
    expect(unplaced(['r', '▁', 'T'])('r')).toBe('r')
    expect(clean('Ġcat')).toBe('cat')
  })

  it('of an image are places', () => {
    const patches = ['class', '1,1', '1,2'].map((text, at) => ({ text, start: at, end: at + (at ? 1 : 0), special: !at }))
    patches[2]!.start = patches[1]!.end
    expect(patches.map((_, at) => named(patches, at))).toEqual(['class', '1,1', '1,2'])
    expect(patches.map(({ text }) => spot(text))).toEqual(['the class token', 'the patch in row 1, column 1', 'the patch in row 1, column 2'])
  })
})

describe('running text', () => {
  const text = (all: string[], whole: boolean) => {
    const labels = all.map((one) => ({ text: one, special: /^<.*>$/.test(one) }))
    return labels.map((one, at) => (apart(labels, at, whole) ? ' ' : '') + clean(one.text)).join('')
  }
  it('has a space where a piece says so, and between words', () => {
    expect(text(['▁The', '▁str', 'eet', ',', '▁too', '.', '</s>'], false)).toBe('The street, too. </s>')
    expect(text(['The', 'street', ',', '(', 'didn’t', ')', '.', '</s>'], true)).toBe('The street, (didn’t). </s>')
  })
})
