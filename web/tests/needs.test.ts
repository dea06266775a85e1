import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Look } from '../src/lib/look'
import { lost, needs, type Need, type Needs, ranked, told, wanted } from '../src/lib/needs'
import type { Asked, Kind, LookValues } from '../src/lib/types'

const need = (kind: Kind, layer: number, head: number, probability: number): Need => ({ kind, layer, head, score: Math.log(probability) })
const found = (whole: number, heads: Need[]): Needs => ({ whole: Math.log(whole), logarithm: true, total: heads.length, heads })

describe('the head that matters most', () => {
  const some = found(0.94, [need('encoder', 1, 1, 0.93), need('cross', 1, 1, 0.03), need('cross', 2, 2, 0.5)])

  it('is the one without which least is left, of whatever kind', () => {
    expect(ranked(some).map(({ kind, layer }) => [kind, layer])).toEqual([['cross', 1], ['cross', 2], ['encoder', 1]])
    expect(Math.exp(-lost(some, some.heads[1]!))).toBeCloseTo(0.03 / 0.94)
    const { before, first, behind } = told(some, '“es”')
    expect([before, first!.layer, first!.head]).toEqual(['Without ', 1, 1])
    expect(behind).toBe(' “es” falls from 94 % to 3 %; no other head matters as much (next: encoder–decoder head 2·2, 50 %).')
  })

  it('is none of those that are off already', () => {
    expect(told(some, '“es”', [['cross', 1, 1]]).first).toEqual(some.heads[2])
  })

  it('stands alone where there is one, and is not named where none matters', () => {
    expect(told(found(0.5, [need('cross', 1, 1, 0.25)]), 'x').behind).toBe(' x falls from 50 % to 25 %.')
    const even = told(found(0.94, [need('cross', 1, 1, 0.93), need('cross', 1, 2, 0.99)]), '“es”')
    expect(even).toEqual({ before: 'No head is needed alone: without any one of them “es” keeps 93 % or more, of 94 %.', first: null, behind: '' })
  })

  it('changes a number most, up or down', () => {
    const numbers: Needs = { whole: 2, logarithm: false, total: 2, heads: [need('encoder', 1, 1, 1), { kind: 'encoder', layer: 1, head: 2, score: 5 }] }
    expect(told(numbers, 'what it says').behind).toContain('goes from 2.00 to 5.00')
  })
})

describe('what can be asked after', () => {
  const values = (more: object) => ({ values: { output: { kind: 'text' }, source: [], ...more } as unknown as LookValues }) as Look
  const kept = { text: '▁es', name: 'es', special: false, places: [3, 4] }

  it('is a written token, which the decoder reads one place behind', () => {
    expect(wanted(values({}), 'text', 'cross', kept)).toEqual({ name: '“es”', places: [3, 4], label: null })
    expect(wanted(values({}), 'text', 'decoder', kept)!.places).toEqual([2, 3])
    expect(wanted(values({}), 'text', 'encoder', kept)).toBeNull()
    expect(wanted(values({}), 'text', 'decoder', { ...kept, places: [0] })).toBeNull()
    expect(wanted(values({}), 'text', 'cross', null)).toBeNull()
  })

  it('is any token of a language model but the first', () => {
    const output = { kind: 'continuation' }
    expect(wanted(values({ output }), 'continuation', 'decoder', kept)!.places).toEqual([3, 4])
    expect(wanted(values({ output }), 'continuation', 'decoder', { ...kept, places: [0] })).toBeNull()
  })

  it('is a label without any token, a word by its tag, and what fills a gap', () => {
    const classes = { kind: 'classes', classes: [['good', 0.9], ['bad', 0.1]], said: 'good' }
    expect(wanted(values({ output: classes }), 'classes', 'encoder', null)).toEqual({ name: '“good”', places: [], label: 'good' })
    expect(wanted(values({ output: { ...classes, said: 0.4 } }), 'classes', 'encoder', null)!.label).toBeNull()
    const source = [
      { text: 'The', start: 0, end: 3, special: false },
      { text: '[MASK]', start: 4, end: 4, special: true },
    ]
    const tags = { kind: 'tags', tags: [{ start: 0, end: 3, text: 'The', tag: 'B', probability: 1 }] }
    const at = (place: number) => ({ ...kept, places: [place] })
    expect(wanted(values({ output: tags, source }), 'tags', 'encoder', at(0))).toEqual({ name: '“The” as B', places: [0], label: 'B' })
    expect(wanted(values({ output: tags, source }), 'tags', 'encoder', at(1))).toBeNull()
    const words = { kind: 'words', gaps: [[['▁cat', 0.5]]] }
    expect(wanted(values({ output: words, source }), 'words', 'encoder', at(1))).toEqual({ name: '“cat”', places: [1], label: null })
    expect(wanted(values({ output: words, source }), 'words', 'encoder', at(0))).toBeNull()
  })
})

/** As the server answers: two heads at a time. */
function packed(begin: number): ArrayBuffer {
  const heads = [['encoder', 1, 1], ['encoder', 1, 2], ['cross', 1, 1]].slice(begin, begin + 2)
  const json = { score: -1, logarithm: true, total: 3, heads, arrays: { without: { type: 'float32', shape: [heads.length], begin: 0 } } }
  const head = new TextEncoder().encode(JSON.stringify(json))
  const filled = Math.ceil((4 + head.length) / 8) * 8
  const found = new ArrayBuffer(filled + 4 * heads.length)
  new DataView(found).setUint32(0, head.length, true)
  new Uint8Array(found).set(head, 4)
  new Float32Array(found, filled).set(heads.map((_, at) => -2 - begin - at))
  return found
}

describe('asking', () => {
  afterEach(() => vi.unstubAllGlobals())

  it('goes on until every head was switched off', async () => {
    const begins: number[] = []
    vi.stubGlobal('fetch', (_: string, { body }: RequestInit) => {
      const { begin, places } = JSON.parse(String(body)) as { begin: number; places: number[] }
      expect(places).toEqual([3])
      begins.push(begin)
      return Promise.resolve(new Response(packed(begin)))
    })
    const seen: Needs[] = []
    await needs({} as Asked, { name: 'x', places: [3], label: null }, (one) => seen.push(one), new AbortController().signal)
    expect(begins).toEqual([0, 2])
    expect(seen.map(({ heads }) => heads.length)).toEqual([2, 3])
    expect(seen[1]!.heads.map(({ kind, score }) => [kind, score])).toEqual([['encoder', -2], ['encoder', -3], ['cross', -4]])
  })
})
