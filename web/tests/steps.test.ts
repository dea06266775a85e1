import { describe, expect, it } from 'vitest'
import { ending } from '../src/lib/continued'
import { against, begin, chance, measure, steps } from '../src/lib/steps'
import type { LookValues, Token } from '../src/lib/types'

const token = (text: string): Token => ({ text, start: 0, end: text.length, special: false })
const said = (...some: [string, number][]) => some.map(([piece, probability], id) => ({ id, piece, probability }))

function values(given: Partial<LookValues>): LookValues {
  const none = { source: [], target: [], written: [] }
  return { source_text: '', target_text: '', ...none, words: none, kinds: {}, output: { kind: 'nothing' }, said: null, probability: null, branch: null, image: null, ...given }
}

describe('steps', () => {
  it('of a decoder say what is written at each place', () => {
    const pass = values({
      written: ['das', 'Tier', '</s>'].map(token),
      said: [said(['das', 0.6], ['die', 0.3]), said(['Haus', 0.5], ['Auto', 0.25]), said(['</s>', 1])],
      probability: [0.6, 0.0625, 1],
    })
    const all = steps(pass, 'text')
    expect(all.map(({ taken }) => taken)).toEqual(['das', 'Tier', '</s>'])
    expect(all[0]!.candidates.map((one) => one.taken)).toEqual([true, false])
    expect(all[0]!.rest).toBeCloseTo(0.1)
    expect(all[1]!.candidates.at(-1)).toEqual({ piece: 'Tier', probability: 0.0625, taken: true })
    expect(all[1]!.rest).toBeCloseTo(1 - 0.5 - 0.25 - 0.0625)
    expect(all[2]!.rest).toBe(0)
  })

  it('of a language model say what comes behind each place', () => {
    const text = ['</s>', 'a', 'b'].map(token)
    const pass = values({ source: text, written: text, said: [said(['a', 0.5]), said(['b', 0.9]), said(['c', 0.4])], probability: [null, 0.5, 0.9] })
    const all = steps(pass, 'continuation')
    expect(all.map(({ place, row, taken }) => [place, row, taken])).toEqual([[1, 0, 'a'], [2, 1, 'b'], [3, 2, null]])
    expect(all[begin(pass, 'continuation')]!.taken).toBeNull()
  })

  it('of a language model end where it stopped by itself', () => {
    const text = ['</s>', 'a', 'b'].map(token)
    const pass = values({ source: text, written: text, said: [said(['a', 0.5]), said(['b', 0.9]), said(['</s>', 0.75], ['c', 0.2])], probability: [null, 0.5, 0.9] })
    const last = (end?: { piece: string; probability: number }) => steps(pass, 'continuation', end).at(-1)!
    expect([last().taken, last().candidates.some(({ taken }) => taken)]).toEqual([null, false])
    const stopped = ending([{ piece: 'b', probability: 0.9 }, { piece: '</s>', probability: 0.75 }])!
    expect([last(stopped).taken, last(stopped).probability, last(stopped).candidates.map(({ taken }) => taken)]).toEqual(['</s>', 0.75, [true, false]])
    expect(steps(pass, 'continuation', stopped).map(({ taken }) => taken)).toEqual(['a', 'b', '</s>'])
    expect([ending([{ piece: 'b', probability: 0.9 }]), ending([])]).toEqual([null, null])
  })

  it('of hidden words begin at the first gap', () => {
    const text = ['[CLS]', 'a', '[MASK]'].map(token)
    const pass = values({ source: text, written: text, said: text.map(() => said(['a', 0.5])) })
    expect(begin(pass, 'words')).toBe(2)
    expect(steps(pass, 'words')[2]!.taken).toBeNull()
    expect(steps(pass, 'words')[1]!.candidates[0]!.taken).toBe(true)
  })

  it('mark one of two pieces that are written alike', () => {
    const pass = values({ written: [token('a')], said: [said(['a', 0.7], ['a', 0.2])], probability: [0.2] })
    expect(steps(pass, 'text')[0]!.candidates.map((one) => one.taken)).toEqual([false, true])
  })

  it('name small chances', () => {
    expect([0.63, 0.0015, 0.004, 0.00032, 1.2e-7].map((one) => chance(one))).toEqual(['63 %', '0.15 %', '0.4 %', '0.032 %', '1.2e−7'])
  })
})

describe('candidates', () => {
  it('are measured by what was taken, else by the first', () => {
    const some = [['a', 0.5, false], ['b', 0.3, true], ['c', 0.001, false]].map(([piece, probability, taken]) => ({ piece, probability, taken })) as Parameters<typeof measure>[0]
    expect(measure(some)!.piece).toBe('b')
    expect(measure(some.map((one) => ({ ...one, taken: false })))!.piece).toBe('a')
    expect(measure([])).toBeNull()
    expect(some.map(({ probability }) => against(probability, 0.3))).toEqual(['1.7 times more', 'as much', '300 times less'])
    expect(against(0, 0.3)).toBe('infinitely many times less')
  })

  it('stand behind the piece before them', () => {
    const pass = values({
      source: [{ ...token('x'), special: false }],
      written: [token('▁B'), { ...token('<extra_0>'), special: true }, token('r')],
      said: [said(['▁B', 1]), said(['r', 1]), said(['r', 1])],
    })
    expect(steps(pass, 'text').map((one) => one.before)).toEqual([null, '▁B', null])
    expect(steps(pass, 'continuation').map((one) => one.before)).toEqual(['▁B', null, 'r'])
  })
})

describe('where the steps begin', () => {
  const values = (more: object) => ({ source: [{ text: 'The' }, { text: '[MASK]' }, { text: '.' }], said: [[], [], []], ...more }) as unknown as LookValues
  it('is at the token that is kept, if a step is made there', () => {
    expect(begin(values({}), 'text', 2)).toBe(2)
    expect(begin(values({}), 'text', 3)).toBe(0)
    expect(begin(values({}), 'text')).toBe(0)
    expect(begin(values({}), 'words', 0)).toBe(0)
    expect(begin(values({}), 'words')).toBe(1)
    expect(begin(values({ said: null }), 'continuation', 0)).toBe(2)
  })
})
