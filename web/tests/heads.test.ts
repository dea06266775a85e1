import { afterEach, describe, expect, it, vi } from 'vitest'
import { amount, cell, intervals, manyTexts, shown, strength, told, whose, type Column, type ManyTexts } from '../src/lib/heads'
import * as api from '../src/lib/api'
import type { Asked } from '../src/lib/types'

const column = (name: string, chance = 0.1, unit: string | null = null): Column => ({ name, title: name, note: 'of it', unit, chance, queries: 1200, texts: 40 })
const found: ManyTexts = {
  origin: 'validation',
  of: 'texts',
  done: 40,
  total: 40,
  cut: 0,
  confidence: 0.95,
  excess: 0.2,
  kinds: {
    encoder: {
      layers: 1,
      heads: 2,
      columns: [column('previous'), column('same_word'), column('distance_1'), column('entropy', 3, 'bits')],
      functions: [[null, 'previous']],
      rare: [[['same_word'], []]] as string[][][],
      labels: [['same word where there is one', 'previous token']],
    },
  },
  arrays: {
    'mean.encoder': { data: [0.05, 0.7, 0.2, 2, 0.55, 0.1, 0.3, 1.25] },
    'low.encoder': { data: [0.04, 0.6, 0.2, 2, 0.5, 0.1, 0.3, 1] },
    'high.encoder': { data: [0.06, 0.8, 0.2, 2, 0.6, NaN, 0.3, 1.5] },
  },
}

afterEach(() => vi.restoreAllMocks())

describe('what heads do over many texts', () => {
  it('has a cell for each head and function', () => {
    expect(cell(found, 'encoder', 1, 2, 0)).toEqual({ mean: 0.55, low: 0.5, high: 0.6, sure: true })
    expect(cell(found, 'encoder', 1, 1, 1).sure).toBe(true)
    expect(cell(found, 'encoder', 1, 1, 0).sure).toBe(false)
    expect(shown(found.kinds.encoder!)).toEqual([0, 1, 3])
  })

  it('has ink for what is above chance, and none for measures', () => {
    const { columns } = found.kinds.encoder!
    expect(strength(columns[0]!, cell(found, 'encoder', 1, 2, 0))).toBeCloseTo(0.5)
    expect(strength(columns[0]!, cell(found, 'encoder', 1, 1, 0))).toBe(0)
    expect(strength(columns[3]!, cell(found, 'encoder', 1, 1, 3))).toBe(0)
  })

  it('is said in a sentence with its interval and chance', () => {
    const { columns } = found.kinds.encoder!
    expect(told(columns[0]!, cell(found, 'encoder', 1, 2, 0), 'texts')).toBe('previous (of it): 55 %, 95 % interval 50 to 60 %; chance 10 %; 1,200 queries in 40 texts.')
    expect(told(columns[3]!, cell(found, 'encoder', 1, 2, 3), 'texts')).toContain('1.3 bits, 95 % interval 1.0 to 1.5 bits')
    expect(amount(columns[0]!, NaN)).toBe('–')
    expect(whose(found)).toBe('40 texts of the validation set')
    expect(told(column('distance', 9, 'pixels'), cell(found, 'encoder', 1, 2, 3), 'images')).toMatch(/1\.3 pixels, .* in 40 images\.$/)
    expect(whose({ ...found, origin: 'digits' })).toBe('40 test images of the demonstration')
  })

  it('is told of a whole head at once', () => {
    expect(intervals(found, 'encoder', 1, 2)).toBe('mean and 95 % interval: previous 55 % (50 to 60 %); same_word 10 % (10 to –); entropy 1.3 bits (1.0 to 1.5 bits).')
  })

  it('is asked until every text was read, or no further one is', async () => {
    const asked = { model: 0, snapshot: null, changes: {} } as unknown as Asked
    for (const [all, times] of [[[8, 16, 20], 3], [[8, 8], 2]] as const) {
      const left: number[] = [...all]
      const ask = vi.spyOn(api, 'ask').mockImplementation(async () => ({ values: { ...found, done: left.shift(), total: 20 }, arrays: {} }) as never)
      const seen: number[] = []
      await manyTexts(asked, ({ done }) => seen.push(done), new AbortController().signal)
      expect(seen).toEqual(all)
      expect(ask).toHaveBeenCalledTimes(times)
      ask.mockRestore()
    }
  })
})
