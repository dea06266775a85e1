/** Words beside the points they name, none over another. */

export interface Name {
  /** The point, in pixels. */
  x: number
  y: number
  /** Of the word. */
  width: number
}

/** Where a word begins and which height its middle has. */
export interface Spot {
  x: number
  y: number
}

/** Pixels; the grid in which words are looked for that may be in the way. */
const CELL = 48

function cells(left: number, top: number, right: number, bottom: number): number[] {
  const found: number[] = []
  for (let row = Math.floor(top / CELL); row <= Math.floor(bottom / CELL); row++)
    for (let column = Math.floor(left / CELL); column <= Math.floor(right / CELL); column++) found.push(row * 4096 + column)
  return found
}

class Taken {
  #boxes = new Map<number, [number, number, number, number][]>()

  free(left: number, top: number, right: number, bottom: number): boolean {
    for (const cell of cells(left, top, right, bottom))
      for (const [l, t, r, b] of this.#boxes.get(cell) ?? []) if (left < r && l < right && top < b && t < bottom) return false
    return true
  }

  take(left: number, top: number, right: number, bottom: number): void {
    for (const cell of cells(left, top, right, bottom)) {
      const there = this.#boxes.get(cell)
      if (there) there.push([left, top, right, bottom])
      else this.#boxes.set(cell, [[left, top, right, bottom]])
    }
  }
}

/**
 * A spot for each name, the first names first: right of its point, left, above or below; null where all are taken
 * or it would not be within the drawing. Around each is so much `room`.
 */
export function spots(names: readonly Name[], high: number, width: number, height: number, gap = 6, room = 0): (Spot | null)[] {
  const taken = new Taken()
  const half = high / 2
  return names.map((name) => {
    const choices: Spot[] = [
      { x: name.x + gap, y: name.y },
      { x: name.x - gap - name.width, y: name.y },
      { x: name.x - name.width / 2, y: name.y - gap - half },
      { x: name.x - name.width / 2, y: name.y + gap + half },
    ]
    for (const spot of choices) {
      const [left, top, right, bottom] = [spot.x, spot.y - half, spot.x + name.width, spot.y + half]
      if (left < 0 || top < 0 || right > width || bottom > height || !taken.free(left - room, top - room / 2, right + room, bottom + room / 2)) continue
      taken.take(left, top, right, bottom)
      return spot
    }
    return null
  })
}

/** How many points each stands for where those that lie within `side` of one before them are left out: 0 of these. */
export function heaps(points: readonly { x: number; y: number }[], side: number): number[] {
  const there = new Map<string, number[]>()
  const many = points.map(() => 0)
  points.forEach(({ x, y }, at) => {
    const [column, row] = [Math.floor(x / side), Math.floor(y / side)]
    let near: number | undefined
    for (let c = column - 1; c <= column + 1; c++)
      for (let r = row - 1; r <= row + 1; r++)
        near ??= there.get(`${c} ${r}`)?.find((other) => Math.hypot(points[other]!.x - x, points[other]!.y - y) < side)
    if (near !== undefined) return void (many[near]! += 1)
    many[at] = 1
    const cell = `${column} ${row}`
    there.set(cell, [...(there.get(cell) ?? []), at])
  })
  return many
}
