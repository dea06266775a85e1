import { describe, expect, it } from 'vitest'
import { rival, shifts } from '../src/lib/shifts'
import type { LookValues, Output } from '../src/lib/types'

const token = (text: string, special = false) => ({ text, start: 0, end: text.length, special })
const said = (piece: string, probability: number) => ({ id: 1, piece, probability })
const written = ['▁Tier', '▁weil', '▁es', '▁müde'].map((text) => token(text))

function values(output: Partial<Output> & { kind: Output['kind'] }, more: Partial<LookValues> = {}): LookValues {
  return { output, written, source: [], said: null, probability: null, ...more } as unknown as LookValues
}

describe('what becomes less probable', () => {
  const before = values({ kind: 'text' }, { probability: [0.9, 0.8, 0.94, 0.7] })
  const after = values(
    { kind: 'text' },
    { probability: [0.9, 0.801, 0.03, 0.5], said: ['▁Tier', '▁weil', '▁sie', '▁müde'].map((piece) => [said(piece, 0.6)]) },
  )

  it('is told by how much, and with what comes instead', () => {
    expect(shifts(before, after)).toEqual([
      { name: 'es', before: 0.94, after: 0.03, least: 0, instead: { name: 'sie', probability: 0.6 } },
      { name: 'müde', before: 0.7, after: 0.5, least: 0, instead: null },
    ])
  })

  it('is told of what is kept before all, though that stays', () => {
    expect(shifts(before, after, [0], 0, 2).map(({ name }) => name)).toEqual(['Tier', 'es'])
  })

  it('is behind what was read, of a language model', () => {
    const [one, other] = [0.5, 0.1].map((probability) =>
      values({ kind: 'continuation' }, { probability: [null, probability, 0.5, 0.5], said: [[said('▁da', 0.4)], [], [], []] }),
    )
    expect(shifts(one!, other!)).toEqual([{ name: 'weil', before: 0.5, after: 0.1, least: 0, instead: { name: 'da', probability: 0.4 } }])
    // what was read is told of only if it is kept
    expect(shifts(one!, other!, [], 2)).toEqual([])
    expect(shifts(one!, other!, [1], 2).map(({ name }) => name)).toEqual(['weil'])
  })

  it('is of labels the one that was said before all', () => {
    const [one, other] = [
      [['good', 0.9], ['bad', 0.1]],
      [['bad', 0.8], ['good', 0.2]],
    ].map((classes) => values({ kind: 'classes', classes: classes as [string, number][] }))
    expect(shifts(one!, other!).map(({ name, before, after }) => [name, before, after])).toEqual([['good', 0.9, 0.2], ['bad', 0.1, 0.8]])
    expect(shifts(one!, one!).map(({ name }) => name)).toEqual(['good'])
  })

  it('is less than all that is told of a gap, or than what another tag leaves', () => {
    const source = [token('[MASK]', true)]
    const [one, other] = [[['▁cat', 0.6]], [['▁dog', 0.5], ['▁pig', 0.2]]].map((gap) => values({ kind: 'words', gaps: [gap as [string, number][]] }, { source }))
    expect(shifts(one!, other!, [0])).toEqual([{ name: 'cat', before: 0.6, after: null, least: 0.2, instead: { name: 'dog', probability: 0.5 } }])
    const [tagged, otherwise] = ['B', 'O'].map((tag) => values({ kind: 'tags', tags: [{ start: 0, end: 3, text: 'The', tag, probability: 0.75 }] }))
    expect(shifts(tagged!, otherwise!)).toEqual([{ name: 'The B', before: 0.75, after: null, least: 0.25, instead: { name: 'O', probability: 0.75 } }])
  })
})

describe('what might have come', () => {
  it('is the most probable of the others', () => {
    const one = values({ kind: 'text' }, { probability: [0.9, 0.8, 0.5, 0.7], said: [[], [], [said('▁sie', 0.6), said('▁es', 0.5)], []] })
    expect(rival(one, 2)).toEqual({ name: 'es', probability: 0.5, other: 'sie', less: 0.6 })
    expect(rival(one, 0)).toBeNull()
  })
})
