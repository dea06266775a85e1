import { describe, expect, it } from 'vitest'
import { filled, filledBy } from '../src/lib/gaps'

const pieces = (...all: string[]) => all.map((piece, at) => ({ piece, probability: at / 10 }))

describe('gaps', () => {
  it('hold what was written behind their names', () => {
    const found = filled('The cow [MASK] cross [MASK].', pieces('<extra_0>', '▁couldn', "'t", '<extra_1>', '▁it', '<extra_2>', '</s>'))
    expect(found.map(({ piece }) => piece).join('')).toBe("The cow couldn't cross it.")
    expect(found.filter(({ kind }) => kind === 'filled')).toEqual([
      { piece: ' couldn', probability: 0.1, kind: 'filled' },
      { piece: "'t", probability: 0.2, kind: 'filled' },
      { piece: ' it', probability: 0.4, kind: 'filled' },
    ])
  })

  it('may have names of their own, in any order', () => {
    expect(filledBy('a <extra_id_1> b [MASK] c', '<extra_id_0> two <extra_id_1> one')).toBe('a one b two c')
  })

  it('stay open where nothing is written', () => {
    const found = filled('[MASK] fence [MASK]', pieces('<extra_1>', '▁old'))
    expect(found.map(({ piece, kind }) => [piece, kind])).toEqual([['…', 'empty'], [' fence', 'read'], [' old', 'filled']])
    expect(filled('no gap', pieces('<extra_0>', 'x'))).toEqual([{ piece: 'no gap', probability: null, kind: 'read' }])
  })

  it('of letters have their spaces apart', () => {
    expect(filled('a [MASK] c', pieces('<extra_0>', 'b', 'e')).map(({ piece }) => piece).join('')).toBe('a be c')
  })

  it('are filled by one text too', () => {
    expect(filledBy('the [MASK] cat s [MASK].', "<extra_0>'t cross <extra_1> it <extra_2> tired. <extra_3>")).toBe("the't cross cat s it.")
  })
})
