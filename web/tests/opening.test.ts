import { describe, expect, it } from 'vitest'
import { Look } from '../src/lib/look'
import { opening } from '../src/lib/opening'
import type { LookValues, Side } from '../src/lib/types'

/** Three tokens, the last of them a full stop, and heads that give so much to them. */
function pass(queries: Side, ...heads: number[][][]): Look {
  return marked('.', queries, ...heads)
}

function marked(mark: string, queries: Side, ...heads: number[][][]): Look {
  const tokens = ['▁a', '▁b', mark].map((text, at) => ({ text, start: at, end: at + 1, special: false }))
  const kinds = { encoder: { layers: 1, heads: heads.length, queries, keys: 'source' } }
  const data = Float32Array.from(heads.flat(2))
  const values = { source: tokens, written: tokens, kinds } as unknown as LookValues
  return new Look({ values, arrays: { 'weights.encoder': { shape: [1, heads.length, 3, 3], data } as never } })
}

const EVEN = [[0.3, 0.4, 0.3], [0.4, 0.3, 0.3], [0.3, 0.3, 0.4]]
const ITSELF = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
const STOP = [[0, 0, 1], [0, 0, 1], [0, 0, 1]]
const OTHER = [[0.1, 0.8, 0.1], [0.9, 0.1, 0], [0, 0, 1]]

describe('the head to begin with', () => {
  it('looks sharply at words, not at a full stop or at the word itself', () => {
    expect(opening(pass('source', ITSELF, STOP, EVEN, OTHER), 'encoder', true)).toEqual({ layer: 1, head: 4 })
    expect(opening(pass('source', ITSELF, STOP, EVEN), 'encoder', true)).toEqual({ layer: 1, head: 3 })
    expect(opening(marked("'t", 'source', STOP, EVEN), 'encoder', true)).toEqual({ layer: 1, head: 2 })
  })

  it('may look at the same place of another text', () => {
    expect(opening(pass('written', STOP, OTHER, ITSELF), 'encoder', false)).toEqual({ layer: 1, head: 3 })
  })

  it('is any where no weights came with the pass', () => {
    const look = pass('source', EVEN)
    expect(opening(new Look({ values: look.values, arrays: {} }), 'encoder', true)).toBeNull()
  })
})
