import { describe, expect, it } from 'vitest'
import { chance, sameBag, shuffled } from '../src/lib/order'

describe('a sentence in another order', () => {
  it('has the same words and the mark at its end', () => {
    const text = 'The animal didn’t cross the street.'
    for (let seed = 0; seed < 50; seed++) {
      const found = shuffled(text, seed)!
      expect(found).not.toBe(text)
      expect(found.endsWith('.')).toBe(true)
      expect(found.startsWith('The ')).toBe(true)
      expect(sameBag(found.slice(0, -1).split(' '), text.slice(0, -1).split(' '))).toBe(true)
    }
  })

  it('is always the same for one seed', () => {
    expect(shuffled('a b c d e f', 3)).toBe(shuffled('a b c d e f', 3))
  })

  it('is there only if words differ', () => {
    expect(shuffled('', 1)).toBeNull()
    expect(shuffled('x', 1)).toBeNull()
    expect(shuffled('na na na', 1)).toBeNull()
    expect(shuffled('ab', 1)).toBe('ba')
    expect(shuffled('one two', 1)).toBe('two one')
    expect(shuffled('...', 1)).toBeNull()
  })

  it('has characters for words where there are no spaces', () => {
    expect([...shuffled('猫在睡觉。', 2)!].sort()).toEqual([...'猫在睡觉。'].sort())
    expect(shuffled('猫在睡觉。', 2)!.endsWith('。')).toBe(true)
  })

  it('comes up in every order about equally often', () => {
    const seen = new Map<string, number>()
    for (let seed = 0; seed < 5000; seed++) {
      const found = shuffled('first a b c', seed)!
      seen.set(found, (seen.get(found) ?? 0) + 1)
    }
    expect(seen.size).toBe(5)
    for (const count of seen.values()) expect(count).toBeGreaterThan(850)
  })
})

describe('chance', () => {
  it('is spread evenly from 0 to 1', () => {
    const random = chance(7)
    const tenth = new Array<number>(10).fill(0)
    for (let i = 0; i < 10_000; i++) tenth[Math.floor(random() * 10)]! += 1
    for (const count of tenth) expect(Math.abs(count - 1000)).toBeLessThan(150)
  })
})

it('bags are the same in any order, but not with other numbers of each', () => {
  expect(sameBag(['a', 'b', 'a'], ['a', 'a', 'b'])).toBe(true)
  expect(sameBag(['a', 'b', 'a'], ['a', 'b', 'b'])).toBe(false)
  expect(sameBag(['a'], ['a', 'a'])).toBe(false)
})
