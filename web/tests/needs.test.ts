import { afterEach, describe, expect, it, vi } from 'vitest'
import { Look } from '../src/lib/look'
import { lost, needs, on, type Need, type Needs, ranked, told, wanted } from '../src/lib/needs'
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
    expect(on(some, [['cross', 1, 1], ['cross', 9, 9]])).toEqual([some.heads[0], some.heads[2]])
  })

  it('stands alone where there is one, and is not named where none matters', () => {
    expect(told(found(0.5, [need('cross', 1, 1, 0.25)]), 'x').behind).toBe(' x falls from 50 % to 25 %.')
    const even = told(found(0.94, [need('cross', 1, 1, 0.93), need('cross', 1, 2, 0.99)]), '“es”')
    expect(even).toEqual({ before: 'No head is needed alone: without any one of them “es” keeps 93 % or more, of 94 %.', first: null, behind: '' })
  })

  it('is never said to change from a number to the same', () => {
    expect(told(found(0.0149, [need('cross', 1, 1, 0.0051)]), 'x').behind).toBe(' x falls from 1.5 % to 0.5 %.')
    expect(told(found(0.9, [need('cross', 1, 1, 0.031), need('cross', 1, 2, 0.0349)]), 'x').behind).toContain('falls from 90 % to 3 %; no other head matters as much (next: encoder–decoder head 1·2, 3.5 %)')
    const stays = (whole: number, ...scores: number[]) => told({ whole, logarithm: false, total: 2, heads: scores.map((score, at) => ({ kind: 'encoder', layer: 1, head: at + 1, score })) }, 'what it says').before
    expect(stays(3, 3.1, 2.95)).toBe('No head is needed alone: without any one of them what it says changes by 0.10 at most, from 3.00.')
    expect(stays(3, 3, 3)).toContain('what it says stays 3.00.')
    expect(told(found(0.94, [need('cross', 1, 1, 0.96)]), 'x').before).toContain('x keeps 94 % or more.')
    expect(told(found(0.941, [need('cross', 1, 1, 0.939)]), 'x').before).toContain('x keeps 94 %.')
  })

  it('changes a number most, up or down', () => {
    const numbers: Needs = { whole: 2, logarithm: false, total: 2, heads: [need('encoder', 1, 1, 1), { kind: 'encoder', layer: 1, head: 2, score: 5 }] }
    expect(told(numbers, 'what it says').behind).toContain('goes from 2.00 to 5.00')
  })
})

describe('what can be asked after', () => {
  const values = (more: object) => ({ values: { output: { kind: 'text' }, source: [], ...more } as unknown as LookValues }) as Look
  const kept = { text: '▁es', name: 'es', special: false, places: [3, 4] }

  const pieces = (...texts: string[]) => texts.map((text, at) => ({ text, start: at, end: at + 1, special: false }))
  const row = (...places: number[]) => ({ ...kept, places })

  it('is what is written where a row looks: the decoder reads a word, and is about to write the next', () => {
    const written = pieces('▁weil', '▁es', '</s>')
    const look = new Look({ values: { output: { kind: 'text' }, written, target: pieces('<s>', '▁weil', '▁es') } as unknown as LookValues, arrays: {} })
    expect(wanted(look, 'text', 'cross', row(1))).toEqual({ name: '“es”', places: [1], label: null })
    expect([0, 1, 2].map((at) => wanted(look, 'text', 'decoder', row(at))!.name)).toEqual(['“weil”', '“es”', '“</s>”'])
    expect(wanted(look, 'text', 'encoder', row(1))).toBeNull()
    expect(wanted(look, 'text', 'cross', null)).toBeNull()
  })

  it('is the next token of a language model, of which the last has none', () => {
    const look = new Look({ values: { output: { kind: 'continuation' }, written: pieces('A', '▁cat', '▁sat') } as unknown as LookValues, arrays: {} })
    expect([0, 1, 2].map((at) => wanted(look, 'continuation', 'decoder', row(at))?.places)).toEqual([[1], [2], undefined])
  })

  it('is a whole word where words are looked at: the one that comes behind the last piece', () => {
    const words = { written: [['weil', [0]], ['übermüdet', [1, 2, 3]], ['</s>', [4]]] }
    const written = pieces('▁weil', '▁über', 'mü', 'det', '</s>')
    const look = new Look({ values: { output: { kind: 'text' }, written, words } as unknown as LookValues, arrays: {} })
    expect(wanted(look, 'text', 'decoder', row(1), true)).toEqual({ name: '“übermüdet”', places: [1, 2, 3], label: null })
    expect(wanted(look, 'text', 'decoder', row(2, 3, 4), true)!.name).toBe('“</s>”')
    expect(wanted(look, 'text', 'cross', row(1, 2, 3), true)!.places).toEqual([1, 2, 3])
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
