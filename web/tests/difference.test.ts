import { describe, expect, it } from 'vitest'
import { difference } from '../src/lib/difference'

const text = (before: string, after: string) => difference(before, after).map(({ text, kind }) => (kind === 'same' ? text : kind === 'new' ? `[+${text}]` : `[-${text}]`)).join('')

describe('what became of a text', () => {
  it('marks what is new and what is gone', () => {
    expect(text('A boy with headphones sits.', 'A boy with heads sits.')).toBe('A boy with [-headphones][+heads] sits.')
    expect(text('the same', 'the same')).toBe('the same')
    expect(text('', 'all new')).toBe('[+all new]')
    expect(text('one two', 'one two three')).toBe('one two[+ three]')
    expect(text('A x y z', 'A b c z')).toBe('A [-x][+b] [-y][+c] z')
    expect(text('A z', 'A b c z')).toBe('A [+b c ]z')
  })

  it('holds the text as it is now, and where little changed the text as it was', () => {
    const words = ['a', 'b', 'c', 'd', ' ', ' ']
    let state = 5
    const random = (most: number) => (state = (state * 48271) % 2147483647) % most
    for (let round = 0; round < 200; round++) {
      const make = () => Array.from({ length: random(14) }, () => words[random(words.length)]).join('')
      const [before, after] = [make(), make()]
      const parts = difference(before, after)
      expect(parts.filter(({ kind }) => kind !== 'gone').map(({ text }) => text).join('')).toBe(after)
      if (parts.some(({ kind }) => kind === 'gone')) expect(parts.filter(({ kind }) => kind !== 'new').map(({ text }) => text).join('').replaceAll(' ', '')).toBe(before.replaceAll(' ', ''))
    }
  })

  it('shows only what is new where nearly nothing stays', () => {
    expect(text('un deux trois quatre cinq', 'one two three four cinq')).not.toContain('[-')
  })
})
