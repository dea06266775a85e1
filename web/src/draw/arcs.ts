/** Arcs from one word to others: over words of its own line, to the feet of those in lines above. */

/** A word in pixels: its middle, and where it begins and ends from the top. */
export interface Spot {
  x: number
  top: number
  bottom: number
}

/** Where an arc ends, how far its two handles reach up (or, below zero, down), and the weight that it stands for. */
export type Arc = [x: number, y: number, up: number, over: number, weight: number]

/** How high an arc over words is, of what it spans. */
const RISE = 0.42
/** Pixels between an arc and a word. */
const ROOM = 3

/** An arc from a word to another one, no higher than `most` over words of the same line. */
export function arc(from: Spot, to: Spot, weight: number, most: number): Arc {
  if (onLine(from, to)) {
    const handle = (rise(from, to, most) * 4) / 3 // a cubic Bézier peaks at three quarters of its handles' height
    return [to.x, to.top - ROOM, handle, handle, weight]
  }
  const [end, half] = to.top < from.top ? [to.bottom + ROOM, 1] : [to.top - ROOM, -1]
  const handle = Math.abs(from.top - ROOM - end) / 2
  return [to.x, end, half * handle, -half * handle, weight]
}

/** An arc that has not left its word. */
export function none(from: Spot): Arc {
  return [from.x, from.top - ROOM, 0, 0, 0]
}

export function onLine(one: Spot, other: Spot): boolean {
  return one.top < other.bottom && other.top < one.bottom
}

export function rise(from: Spot, to: Spot, most: number): number {
  return Math.min(Math.abs(to.x - from.x) * RISE, most)
}

export function path(from: Spot, [x, y, up, over]: Arc): string {
  const begin = from.top - ROOM
  const of = (...numbers: number[]) => numbers.map((one) => one.toFixed(1)).join(' ')
  return `M${of(from.x, begin)}C${of(from.x, begin - up, x, y - over, x, y)}`
}

/** Thicker and darker for larger weights. */
export function stroke(weight: number): { width: number; opacity: number } {
  const strength = Math.min(weight, 1)
  return { width: 1 + 7 * strength, opacity: 0.2 + 0.75 * strength }
}
