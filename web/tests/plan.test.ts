import { describe, expect, it } from 'vitest'
import { aside, boxesOf, boxName, type FigureValues, stations, title, weighs } from '../src/lib/architecture'
import { does, made } from '../src/lib/inside'
import { plan } from '../src/lib/plan'
import type { Model } from '../src/lib/types'

const model = { writes: 'text', image: null, masked: ['decoder'], stacks: ['encoder', 'decoder'], d_model: 64 } as unknown as Model
const layer = (stack: 'encoder' | 'decoder', number: number, parts: string[]): FigureValues['boxes'] => parts.map((part) => [stack, number, part, 100, false])

/** Two layers that read and two that write, as the paper has them, or with the norm before. */
function values(place: 'pre' | 'post'): FigureValues {
  const parts = (...names: string[]) => names.flatMap((name) => (place === 'pre' ? [`${name}_norm`, name, `${name}_add`] : [name, `${name}_norm`]))
  const boxes: FigureValues['boxes'] = [
    ['encoder', 0, 'embedding', 900, false],
    ['encoder', 0, 'positions', 0, false],
    ...[1, 2].flatMap((number) => layer('encoder', number, parts('attention', 'feedforward'))),
    ['decoder', 0, 'embedding', 900, true],
    ...[1, 2].flatMap((number) => layer('decoder', number, parts('attention', 'cross', 'feedforward'))),
    ['', 0, 'output', 900, true],
  ]
  return { boxes, sizes: { norm_place: place, d_ff: 128, heads: 4 }, positions: { encoder: 'sinusoidal', decoder: 'sinusoidal' } }
}

const recurrent: FigureValues = {
  boxes: [
    ['encoder', 0, 'embedding', 9, false],
    ['encoder', 1, 'recurrence', 9, false],
    ['decoder', 0, 'embedding', 9, true],
    ['decoder', 0, 'bridge', 9, false],
    ['decoder', 1, 'recurrence', 9, false],
    ['decoder', 0, 'cross', 9, false],
    ['', 0, 'output', 9, true],
  ],
  sizes: { cell: 'gru', two_way: true, score: 'additive' },
  positions: { encoder: 'none', decoder: 'none' },
}
const drawn = (given: FigureValues, wide = 206, decoder = 2) => plan(given, model, { encoder: 1, decoder }, { encoder: 5, decoder: 7 }, wide)

describe('the plan of Figure 1', () => {
  it('has each box of one layer once, from the bottom up and apart', () => {
    for (const place of ['pre', 'post'] as const) {
      const { columns, height } = drawn(values(place))
      const [reads, writes] = columns
      expect(reads!.placed.every(({ box }) => box.layer <= 1)).toBe(true)
      expect(writes!.placed.at(-1)!.box.part).toBe('output')
      expect(writes!.placed.filter(({ box }) => box.layer).every(({ box }) => box.layer === 2)).toBe(true)
      for (const { placed, frame } of columns) {
        placed.slice(1).forEach((one, at) => expect(one.y + one.high).toBeLessThan(placed[at]!.y))
        expect(placed.at(-1)!.y).toBeGreaterThan(-height)
        expect(frame.layers).toBe(2)
      }
    }
  })

  it('leads by every sub-layer, and to each sum', () => {
    for (const place of ['pre', 'post'] as const) expect(drawn(values(place)).columns.map(({ residuals }) => residuals.length)).toEqual([2, 3])
  })

  it('says at every arrow what passes there', () => {
    const { columns, links } = drawn(values('post'))
    expect(columns[0]!.arrows.map(({ size }) => size)).toEqual(['5 tokens', ...Array<string>(6).fill('5 × 64')])
    expect(columns[1]!.arrows.filter(({ tips }) => tips.length > 1)).toHaveLength(1)
    expect(links).toHaveLength(1)
  })

  it('is as wide as there is room', () => {
    expect(drawn(values('post'), 140).width).toBe(2 * 140 + 40 + 34)
    const lines = drawn(values('post'), 140).columns[1]!.placed.find(({ box }) => box.part === 'attention')!.lines
    expect(lines).toEqual(['Masked multi-head', 'attention'])
  })

  it('has a state that begins with the encoder’s last, and attention to all of them', () => {
    const { columns, links } = drawn(recurrent, 206, 1)
    expect(columns[0]!.placed.map(({ box }) => box.part)).toEqual(['embedding', 'recurrence', 'bridge'])
    expect(links).toHaveLength(2)
    expect(columns.map(({ residuals }) => residuals.length)).toEqual([1, 1])
  })

  it('has positions aside that act in attention', () => {
    const relative: FigureValues = { ...values('pre'), positions: { encoder: 'relative' } }
    const box = boxesOf(relative).find(({ part }) => part === 'positions')!
    expect(aside(relative, box)).toBe(true)
    expect(drawn(relative).columns[0]!.dotted).toHaveLength(1)
    expect(drawn(relative).columns[0]!.arrows).toHaveLength(8)
  })
})

describe('a box', () => {
  it('has the name that the paper gives it', () => {
    const of = (part: string, given: FigureValues, stack: 'encoder' | 'decoder' | '' = 'decoder') => title({ stack, part }, given, model)
    const post = values('post')
    expect([of('embedding', post), of('attention', post), of('attention', post, 'encoder'), of('cross_norm', post), of('feedforward', post), of('output', post, '')]).toEqual([
      'Output embedding',
      'Masked multi-head attention',
      'Multi-head attention',
      'Add & norm',
      'Feed-forward',
      'Linear, softmax',
    ])
    expect([of('cross_norm', values('pre')), of('cross_add', values('pre')), of('recurrence', recurrent, 'encoder'), of('cross', recurrent)]).toEqual(['Layer norm', 'Add', 'GRU, both ways', 'Attention'])
  })

  it('says its parameters, and once whose they are', () => {
    expect(weighs({ parameters: 4224, shared: false, part: 'attention' })).toBe('4,224')
    expect(weighs({ parameters: 900, shared: true, part: 'output' })).toBe('the same table')
    expect(weighs({ parameters: 0, shared: false, part: 'positions' })).toBe('nothing learned')
    const one = (part: string, parameters: number) => made({ part, parameters, shared: false }, { sizes: { d_ff: 128 } }, { d_model: 64 })
    expect(one('feedforward', 2 * 64 * 128 + 192)).toBe('16,576 parameters: two matrices between 64 and 128 numbers, and biases.')
    expect(one('attention', 4 * 64 * 64)).toBe('16,384 parameters: four matrices, for queries, keys, values and the output.')
    expect(one('positions', 0)).toBe('')
  })

  it('says where its norm stands', () => {
    const of = (place: 'pre' | 'post') => does({ stack: 'encoder', part: 'attention_norm' }, values(place), model)
    expect(of('post')).toContain('as in the paper')
    expect(of('pre')).toContain('the paper has it behind')
  })

  it('is told in the address, and passed in every layer', () => {
    const boxes = boxesOf(values('post'))
    expect(boxName(boxes[2]!)).toBe('encoder.1.attention')
    expect(stations(boxes, 'encoder', ({ part }) => part !== 'positions').map(({ layer, part }) => `${layer} ${part}`)).toEqual([
      '0 embedding',
      ...[1, 2].flatMap((number) => ['attention', 'attention_norm', 'feedforward', 'feedforward_norm'].map((part) => `${number} ${part}`)),
    ])
  })
})
