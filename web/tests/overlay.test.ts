import { describe, expect, it } from 'vitest'
import type { Label, Picture } from '../src/lib/look'
import { lines, MOST, ofHead, toggled, type Picked } from '../src/lib/overlay'

const labels = (count: number): Label[] => Array.from({ length: count }, (_, at) => ({ text: `${at}`, name: `${at}`, special: false, places: [at] }))
const picture = (data: number[]): Picture => ({ rows: labels(2), columns: labels(2), data: Float32Array.from(data) })
const head = (layer: number, head: number, kind: Picked['kind'] = 'encoder'): Picked => ({ kind, layer, head })

describe('heads over one another', () => {
  it('are picked and left, at most six, of one kind', () => {
    expect(toggled([head(1, 1)], head(1, 2))).toEqual([head(1, 1), head(1, 2)])
    expect(toggled([head(1, 1), head(1, 2)], head(1, 1))).toEqual([head(1, 2)])
    expect(toggled([head(1, 1)], head(1, 1, 'cross'))).toEqual([head(1, 1, 'cross')])
    const many = Array.from({ length: MOST }, (_, at) => head(1, at + 1))
    expect(toggled(many, head(2, 1))).toEqual(many)
  })

  it('have a colour and a dash each', () => {
    for (const theme of ['light', 'dark'] as const) {
      const all = Array.from({ length: MOST }, (_, at) => ofHead(theme, at))
      expect(new Set(all.map(({ colour }) => colour)).size).toBe(MOST)
      expect(new Set(all.map(({ dash }) => String(dash))).size).toBe(MOST)
    }
  })

  it('are drawn where they are strong, or all of one row', () => {
    const two = [picture([0.9, 0.1, 0.5, 0.5]), picture([0, 1, 1, 0])]
    expect(lines(two, null).map(({ row, column, head }) => [row, column, head])).toEqual([[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 1, 1], [1, 0, 1]])
    expect(lines(two, 0).map(({ column, head }) => [column, head])).toEqual([[1, 0], [0, 0], [1, 1]])
  })
})
