import { describe, expect, it } from 'vitest'
import { Look } from '../src/lib/look'
import { outcome } from '../src/lib/outcome'
import type { LookValues, Output, Token } from '../src/lib/types'

const token = (text: string): Token => ({ text, start: 0, end: /^[<[]/.test(text) ? 0 : 1, special: /^[<[]/.test(text) })

function of(output: Output, given: Partial<Record<'source' | 'written', string[]>> & { said?: LookValues['said'] } = {}) {
  const values = { source: (given.source ?? []).map(token), written: (given.written ?? []).map(token), said: given.said ?? null, output }
  return outcome(new Look({ values: values as unknown as LookValues, arrays: {} }))
}

describe('what a model made of a text', () => {
  it('is the text that was written', () => {
    expect(of({ kind: 'text', text: 'ja' }, { source: ['yes', '</s>'], written: ['ja', '</s>'] })).toMatchObject({ text: 'ja', said: 'ja' })
  })

  it('says the same before other words where the same is said', () => {
    const gaps: [string, number][][] = [[['▁sat', 0.5], ['s', 0.2]]]
    const [one, two] = ['a sat', 'b sat'].map((text) => of({ kind: 'words', gaps, text }, { source: ['▁a', '[MASK]'] }))
    expect([one!.said, one!.more]).toEqual([two!.said, 'sat 50 % · ·s 20 %'])
    expect(one!.text).not.toBe(two!.text)
  })

  it('names what comes next as it would stand there', () => {
    const said = [[{ id: 1, piece: 's', probability: 0.5 }, { id: 2, piece: '▁sat', probability: 0.25 }]]
    expect(of({ kind: 'continuation' }, { source: ['▁cat'], said })).toMatchObject({ text: '… ·s', more: '·s 50 % · sat 25 %' })
  })

  it('is all that a language model went on with', () => {
    const gone = ['▁sat', 's', '.'].map((piece, id) => ({ piece, id, probability: 0.5, others: [] }))
    const look = new Look({ values: { output: { kind: 'continuation' }, source: [], written: [], said: null } as unknown as LookValues, arrays: {} })
    expect([outcome(look, gone), outcome(look, gone.slice(0, 2)), outcome(look, [])].map(({ text }) => text)).toEqual(['… sats.', '… sats', '… (ends here)'])
    expect(outcome(look, gone).said).not.toBe(outcome(look, gone.slice(0, 2)).said)
  })
})
