import { describe, expect, it } from 'vitest'
import { places, rows, tells } from '../src/lib/rows'

const pieces = ['</s>', '▁the', 'ing', '▁cat', '.', '▁', '▁don’t', '▁“']

describe('rows of a map', () => {
  it('are words on request', () => {
    expect(rows(pieces, false)).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
    expect(rows(pieces, true).map((at) => pieces[at])).toEqual(['▁the', '▁cat', '▁don’t'])
  })

  it('keep their places', () => {
    expect([...places([0, 1, 2, 3, 4, 5], [0, 2])]).toEqual([0, 1, 4, 5])
    expect([tells(pieces), tells(['a', 'b'])]).toEqual([true, false])
  })
})
