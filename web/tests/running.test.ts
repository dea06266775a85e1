import { describe, expect, it } from 'vitest'
import { Look, type Label } from '../src/lib/look'
import { running } from '../src/lib/running'
import type { LookValues, Token } from '../src/lib/types'

const labels = (...texts: string[]): Label[] => texts.map((text, at) => ({ text, name: text.replace('▁', ''), special: /^<\/?s>$/.test(text), places: [at] }))
const read = (words: ReturnType<typeof running>) => words.map(({ space, parts }) => `${space ? ' ' : ''}${parts.map(({ text }) => text).join('|')}`)

describe('running text', () => {
  it('keeps the pieces of a word together, and the mark behind it', () => {
    const words = running(labels('The', '▁stre', 'et', '▁did', 'n', "'t", '.', '</s>'), false)
    expect(read(words)).toEqual(['The', ' stre|et', " did|n|'t|.", ' </s>'])
    expect(words.flatMap(({ parts }) => parts.map(({ at }) => at))).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
  })

  it('is the text, with nothing between the pieces of a word', () => {
    const text = (words: ReturnType<typeof running>) => words.map(({ space, parts }) => (space ? ' ' : '') + parts.map((part) => part.text).join('')).join('')
    expect(text(running(labels('Das', '▁Tier', '▁über', 'quer', 'te', '▁die', '▁Stra', 'ße', ',', '▁weil'), false))).toBe('Das Tier überquerte die Straße, weil')
  })

  it('has a space for each space of a text whose pieces are characters, and no sign for it', () => {
    expect(read(running(labels('t', 'o', '▁', 'b', 'e'), false))).toEqual(['t|o', ' ', 'b|e'])
  })

  it('has whole words as they are', () => {
    const words = labels('The', 'street', 'is', '.', '</s>')
    expect(read(running(words, true))).toEqual(['The', ' street', ' is|.', ' </s>'])
  })

  it('knows the spaces of pieces that do not say them, by where they stand', () => {
    const token = (text: string, start: number, end: number): Token => ({ text, start, end, special: start === end })
    const source = [token('[CLS]', 0, 0), token('quick', 0, 5), token('##ly', 5, 7), token('gone', 8, 12), token('.', 12, 13)]
    const look = new Look({ values: { source, kinds: {} } as unknown as LookValues, arrays: {} })
    expect(read(running(look.labels('source', false), false))).toEqual(['[CLS]', ' quick|ly', ' gone|.'])
  })
})
