import { describe, expect, it } from 'vitest'
import { arc, none, path, stroke } from '../src/draw/arcs'

const spot = (x: number, top = 100) => ({ x, top, bottom: top + 20 })

/** The height of a cubic Bézier at its middle. */
const middle = (from: number, [, y, up, over]: readonly number[]) => (from + 3 * (from - up!) + 3 * (y! - over!) + y!) / 8

describe('an arc', () => {
  it('rises over words of its line with what it spans, and no higher than it may', () => {
    expect(middle(97, arc(spot(300), spot(200), 0.5, 500))).toBeCloseTo(97 - 42, 6)
    expect(middle(97, arc(spot(300), spot(0), 0.5, 60))).toBeCloseTo(97 - 60, 6)
    expect(arc(spot(300), spot(200), 0.5, 500)[4]).toBe(0.5)
  })

  it('goes from the head of its word to the foot of one in a line above, between the lines', () => {
    const [x, y, up, over] = arc(spot(40, 160), spot(200, 100), 1, 60)
    expect([x, y]).toEqual([200, 123])
    expect([157 - up, y - over]).toEqual([140, 140])
  })

  it('leaves its word as soon as it has a weight', () => {
    expect(path(spot(40), none(spot(40)))).toBe('M40.0 97.0C40.0 97.0 40.0 97.0 40.0 97.0')
    expect(none(spot(40))[4]).toBe(0)
  })

  it('is thicker and darker for more', () => {
    expect(stroke(1)).toEqual({ width: 8, opacity: 0.95 })
    expect(stroke(0)).toEqual({ width: 1, opacity: 0.2 })
    expect(stroke(1.0001)).toEqual(stroke(1))
  })
})
