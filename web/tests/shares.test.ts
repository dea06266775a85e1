import { describe, expect, it } from 'vitest'
import { Look } from '../src/lib/look'
import { lastLayer, ofOdds, others, rowOf, rowOrMean, scale, seen, strength, top, writer } from '../src/lib/shares'
import type { Kind, LookValues, Model, Side } from '../src/lib/types'

/** A pass whose texts have so many tokens. */
function pass(kinds: Partial<Record<Kind, [queries: Side, keys: Side]>>, size: Partial<Record<Side, number>>): Look {
  const tokens = (side: Side) => Array.from({ length: size[side] ?? 0 }, (_, at) => ({ text: `${side}${at}`, start: at, end: at + 1, special: false }))
  const every = Object.fromEntries(Object.entries(kinds).map(([kind, [queries, keys]]) => [kind, { layers: 3, heads: 2, queries, keys }]))
  const sides = { source: tokens('source'), target: tokens('target'), written: tokens('written') }
  return new Look({ values: { ...sides, kinds: every } as unknown as LookValues, arrays: {} })
}

const TRANSLATOR = pass({ encoder: ['source', 'source'], decoder: ['target', 'target'], cross: ['written', 'source'] }, { source: 4, target: 3, written: 3 })
const WRITER = pass({ decoder: ['target', 'target'] }, { source: 4, target: 4, written: 4 })
const TAGGER = pass({ encoder: ['source', 'source'] }, { source: 4, target: 4, written: 4 })

it('one row of weights, or the mean of all', () => {
  const data = Float32Array.from([1, 0, 0.5, 0.5, 0, 1])
  expect([...rowOrMean(data, 3, 2, 1)]).toEqual([0.5, 0.5])
  expect([...rowOrMean(data, 3, 2, null)]).toEqual([0.5, 0.5])
  expect([...rowOrMean(Float32Array.from([1, 0, 0, 1, 1, 0, 0, 1]), 4, 2, null)]).toEqual([0.5, 0.5])
})

describe('a token that was written', () => {
  it('was written by the row that had read the one before it', () => {
    expect(['text', 'continuation', 'tags'].map((writes) => writer(writes as Model['writes'], 2))).toEqual([2, 1, 2])
  })

  it('is kept in other views where they show it', () => {
    const row = (look: Look, writes: Model['writes'], kind: Kind, place: number) => rowOf(look, writes, kind, place)
    expect([0, 1, 2].map((place) => row(TRANSLATOR, 'text', 'cross', place))).toEqual([0, 1, 2])
    expect([0, 1, 2].map((place) => row(TRANSLATOR, 'text', 'decoder', place))).toEqual([0, 1, 2])
    expect(row(TRANSLATOR, 'text', 'encoder', 1)).toBeNull()
    expect([0, 3].map((place) => row(WRITER, 'continuation', 'decoder', place))).toEqual([null, 2])
    expect(row(TAGGER, 'tags', 'encoder', 3)).toBe(3)
  })

  it('is not blank where it is almost certain: what speaks for it adds to its odds', () => {
    const added = Float32Array.from([0.5, -0.25])
    const odds = (probability: number) => [...ofOdds(added, Math.log(probability))]
    expect(odds(0.5)).toEqual([1, -0.5])
    expect(odds(0.9)[0]).toBeCloseTo(5, 4)
    // the same evidence, of which the logarithm shows less and less
    const evidence = (probability: number) => Float32Array.from([2 * (1 - probability)])
    for (const probability of [0.3, 0.99, 1 - 1e-9]) expect(ofOdds(evidence(probability), Math.log(probability))[0]).toBeCloseTo(2, 3)
    expect([...ofOdds(Float32Array.from([0]), 0)]).toEqual([0])
  })

  it('looked at what was read, and at what had been written', () => {
    const kinds = (look: Look) => [lastLayer(look)?.kind, lastLayer(look, 'target')?.kind]
    expect(kinds(TRANSLATOR)).toEqual(['cross', 'decoder'])
    expect(kinds(WRITER)[0]).toBe('decoder')
    expect(kinds(TAGGER)).toEqual(['encoder', undefined])
    expect(lastLayer(TRANSLATOR)!.shown).toMatchObject({ layer: 3, merge: 'mean' })
    expect(lastLayer(pass({}, { source: 1, target: 1, written: 1 }))).toBeNull()
  })
})

describe('colours', () => {
  it('have one scale for both sides, and no strong one for what is next to nothing', () => {
    const side = (attention: number[], gradient: number[]) => ({ attention: Float32Array.from(attention), gradient: Float32Array.from(gradient) })
    expect(scale([side([0.2, 0.5], [0.1, -2]), side([0.75, 0.25], [0.5, 0])])).toEqual({ attention: 0.75, gradient: 2 })
    expect(scale([side([0.5], [0.001]), { attention: null, gradient: Float32Array.from([-0.02]) }])).toEqual({ attention: 0.5, gradient: 0.1 })
    expect(scale([])).toEqual({ attention: 1, gradient: 0.1 })
    expect([0.001, -0.009, 0.05, -1].map((value) => strength(value, 0.1))).toEqual([0, 0, 0.5, -10])
  })

  it('are strongest at the top, of either side, if it is more than the least', () => {
    expect(top([[0.1, -3, 0.7, 0.2], [0.6]])).toEqual([0, 2])
    expect(top([[0.1], null, [0.6]])).toEqual([2, 0])
    expect(top([[0.005]], 0.01)).toBeNull()
    expect(top([[-1, -2], []])).toBeNull()
  })
})

it('what is written is seen up to the row that writes; without the mask to its end', () => {
  expect([seen(0, 4, true), seen(3, 4, true), seen(0, 4, false)]).toEqual([1, 4, 4])
})

describe('what an output is set against', () => {
  const token = (text: string, at: number) => ({ text, start: at, end: at + 1, special: false })
  const look = (values: object) => new Look({ values, arrays: {} } as unknown as Look['payload'])
  const none = { all: [], stands: false }

  it('are the other candidates, the most probable first', () => {
    const said = [[{ id: 7, piece: 'es', probability: 0.9 }, { id: 4, piece: 'sie', probability: 0.08 }, { id: 5, piece: 'er', probability: 0.01 }]]
    const seen = look({ said, written: [token('es', 0)], probability: [0.9], output: { kind: 'text', text: 'es' } })
    const model = { writes: 'text' as const, labels: null }
    expect(others(seen, model, 0, null)).toEqual({ all: [{ key: 4, name: 'sie' }, { key: 5, name: 'er' }], stands: true })
    const forced = look({ said, written: [token('das', 0)], probability: [0.001], output: { kind: 'text', text: 'das' } })
    expect(others(forced, model, 0, null).all.map(({ key }) => key)).toEqual([7, 4, 5])
    expect(others(seen, model, 9, null)).toEqual({ all: [], stands: true })
  })

  it('are other labels, of which one stands out where one alone holds', () => {
    const model = { writes: 'classes' as const, labels: ['a', 'b', 'c'] }
    const output = { kind: 'classes', classes: [['b', 0.7], ['a', 0.2], ['c', 0.1]], said: 'b', several: false }
    expect(others(look({ written: [], output }), model, 0, null)).toEqual({ all: ['a', 'c'].map((name) => ({ key: name, name })), stands: true })
    expect(others(look({ written: [], output }), model, 0, 'c').all.map(({ key }) => key)).toEqual(['b', 'a'])
    expect(others(look({ written: [], output: { ...output, several: true } }), model, 0, null).stands).toBe(false)
    expect(others(look({ written: [], output: { ...output, said: 0.5 } }), model, 0, null)).toEqual(none)
  })

  it('are other tags', () => {
    const output = { kind: 'tags', tags: [{ start: 0, end: 2, text: 'Ab', tag: 'b', probability: 1 }] }
    const seen = look({ written: [token('A', 0), token('b', 1)], output })
    expect(others(seen, { writes: 'tags', labels: ['a', 'b'] }, 1, null)).toEqual({ all: [{ key: 'a', name: 'a' }], stands: false })
  })
})
