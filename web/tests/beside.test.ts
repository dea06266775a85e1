import { expect, it } from 'vitest'
import { heaps, type Name, type Spot, spots } from '../src/lib/beside'
import { chance } from '../src/lib/order'

const HIGH = 14
const [WIDTH, HEIGHT] = [500, 300]

it('names are within the drawing, and none lies over another', () => {
  const random = chance(5)
  const names: Name[] = Array.from({ length: 800 }, () => ({ x: random() * WIDTH, y: random() * HEIGHT, width: 10 + random() * 90 }))
  const found = spots(names, HIGH, WIDTH, HEIGHT)
  const boxes = found.flatMap((spot, at) => (spot ? [{ ...spot, width: names[at]!.width }] : []))
  expect(boxes.length).toBeGreaterThan(30)
  for (const { x, y, width } of boxes) {
    expect(x).toBeGreaterThanOrEqual(0)
    expect(x + width).toBeLessThanOrEqual(WIDTH)
    expect(y - HIGH / 2).toBeGreaterThanOrEqual(0)
    expect(y + HIGH / 2).toBeLessThanOrEqual(HEIGHT)
  }
  const over = (a: (typeof boxes)[0], b: (typeof boxes)[0]) => a.x < b.x + b.width && b.x < a.x + a.width && Math.abs(a.y - b.y) < HIGH
  boxes.forEach((box, at) => boxes.slice(at + 1).forEach((other) => expect(over(box, other)).toBe(false)))
  // a name is left out only where all four spots are taken or outside
  names.forEach((name, at) => {
    if (found[at]) return
    const tried: Spot[] = [
      { x: name.x + 6, y: name.y },
      { x: name.x - 6 - name.width, y: name.y },
      { x: name.x - name.width / 2, y: name.y - 6 - HIGH / 2 },
      { x: name.x - name.width / 2, y: name.y + 6 + HIGH / 2 },
    ]
    for (const spot of tried) {
      const outside = spot.x < 0 || spot.x + name.width > WIDTH || spot.y - HIGH / 2 < 0 || spot.y + HIGH / 2 > HEIGHT
      expect(outside || boxes.some((box) => over(box, { ...spot, width: name.width }))).toBe(true)
    }
  })
})

it('the first names come first', () => {
  const names = Array.from({ length: 9 }, () => ({ x: 250, y: 150, width: 60 }))
  const found = spots(names, HIGH, WIDTH, HEIGHT)
  // above and below would lie over those at the sides
  expect(found).toEqual([{ x: 256, y: 150 }, { x: 184, y: 150 }, ...Array.from({ length: 7 }, () => null)])
})

it('names keep the room that they are given', () => {
  const random = chance(8)
  const names: Name[] = Array.from({ length: 300 }, () => ({ x: random() * WIDTH, y: random() * HEIGHT, width: 30 }))
  const some = (room: number) => spots(names, HIGH, WIDTH, HEIGHT, 6, room).flatMap((spot) => spot ?? [])
  expect(some(10).length).toBeLessThan(some(0).length)
  const found = some(10)
  found.forEach((one, at) => found.slice(at + 1).forEach((other) => expect(Math.abs(one.x - other.x) >= 40 || Math.abs(one.y - other.y) >= HIGH + 5).toBe(true)))
})

it('points that lie on one another are one', () => {
  expect(heaps([{ x: 0, y: 0 }, { x: 2, y: 0 }, { x: 9, y: 9 }, { x: 0, y: 1 }, { x: -1, y: -1 }], 3)).toEqual([4, 0, 1, 0, 0])
  const random = chance(3)
  const points = Array.from({ length: 400 }, () => ({ x: random() * 100, y: random() * 100 }))
  const many = heaps(points, 6)
  expect(many.reduce((sum, one) => sum + one, 0)).toBe(400)
  const kept = points.filter((_, at) => many[at])
  kept.forEach((one, at) => kept.slice(at + 1).forEach((other) => expect(Math.hypot(one.x - other.x, one.y - other.y)).toBeGreaterThanOrEqual(6)))
})
