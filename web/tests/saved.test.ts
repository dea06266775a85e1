import { describe, expect, it } from 'vitest'
import { fileName } from '../src/lib/saved'

describe('the name of a question', () => {
  const plain = { model: 0, text: 'ä', changes: { off: [], mask: true }, target: null, weights: 'b', opening: 'cross' }

  it('leaves out what is as usual, and the order of the fields', () => {
    expect(fileName('look', plain)).toBe(fileName('look', { text: 'ä', model: 0 }))
  })

  it('is another for another question', () => {
    const others = [{ text: 'b' }, { changes: { off: [], mask: false } }, { branch: [1] }, { unseen: false }].map((more) => fileName('look', { ...plain, ...more }))
    expect(new Set([fileName('look', plain), fileName('row', plain), ...others]).size).toBe(6)
  })
})
