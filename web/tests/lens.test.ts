import { describe, expect, it } from 'vitest'
import { fitted, onScreen, shifted, zoomed } from '../src/lib/lens'

const size = { width: 400, height: 300 }

describe('a lens', () => {
  it('shows all places within the margin, as large as can be', () => {
    const places = [-1, 4, 7, 2, 3, 10]
    const lens = fitted(places, size, 20)
    const seen = [0, 2, 4].map((at) => onScreen(lens, size, places[at]!, places[at + 1]!))
    for (const { x, y } of seen) {
      expect(x).toBeGreaterThanOrEqual(20 - 1e-9)
      expect(x).toBeLessThanOrEqual(380 + 1e-9)
      expect(y).toBeGreaterThanOrEqual(20 - 1e-9)
      expect(y).toBeLessThanOrEqual(280 + 1e-9)
    }
    // 8 by 8 units in 360 by 260 pixels: the height decides
    expect(lens.scale).toBeCloseTo(260 / 8, 9)
    expect(seen[2]!.y).toBeCloseTo(20, 9)
    expect(seen[1]!.y).toBeCloseTo(280, 9)
  })

  it('stands still over no places, and over one', () => {
    expect(fitted([], size, 20)).toEqual({ x: 0, y: 0, scale: 1 })
    const lens = fitted([3, 4], size, 20)
    expect(onScreen(lens, size, 3, 4)).toEqual({ x: 200, y: 150 })
    expect(Number.isFinite(lens.scale)).toBe(true)
  })

  it('keeps what is under the pointer when it magnifies', () => {
    const before = { x: 2, y: -1, scale: 30 }
    const at = onScreen(before, size, 5.5, 1.25)
    const after = zoomed(before, size, 1.7, at, 1, 1000)
    expect(after.scale).toBeCloseTo(51, 9)
    const again = onScreen(after, size, 5.5, 1.25)
    expect(again.x).toBeCloseTo(at.x, 9)
    expect(again.y).toBeCloseTo(at.y, 9)
  })

  it('keeps within its bounds', () => {
    expect(zoomed({ x: 0, y: 0, scale: 10 }, size, 100, { x: 0, y: 0 }, 5, 50).scale).toBe(50)
    expect(zoomed({ x: 0, y: 0, scale: 10 }, size, 0.01, { x: 0, y: 0 }, 5, 50).scale).toBe(5)
  })

  it('moves what is drawn by as much as the pointer', () => {
    const before = { x: 2, y: -1, scale: 30 }
    const [a, b] = [onScreen(before, size, 1, 1), onScreen(shifted(before, 12, -7), size, 1, 1)]
    expect(b.x - a.x).toBeCloseTo(12, 9)
    expect(b.y - a.y).toBeCloseTo(-7, 9)
  })
})
