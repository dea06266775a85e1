import { describe, expect, it } from 'vitest'
import { places, rows, tells } from '../src/lib/rows'

const pieces = ['</s>', '▁the', 'ing', '▁cat', '.', '▁', '▁don’t', '▁“']

describe('rows of a map', () => {
  it('are words on request', () => {
    expect(rows(pieces, { words: false, seen: true })).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
    expect(rows(pieces, { words: true, seen: false }).map((at) => pieces[at])).toEqual(['▁the', '▁cat', '▁don’t'])
  })

  it('are those that training saw, where that was counted', () => {
    expect(rows(pieces, { words: true, seen: true }, [9, 9, 9, 0, 9, 9, 1, 0])).toEqual([1, 6])
  })

  it('keep their places', () => {
    expect([...places([0, 1, 2, 3, 4, 5], [0, 2])]).toEqual([0, 1, 4, 5])
    expect([tells(pieces), tells(['a', 'b'])]).toEqual([true, false])
  })
})
