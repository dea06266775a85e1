/** A search, drawn from left to right: what leads to an output strongly, what was given up faintly. */

import type { Layout, Search } from '../lib/tree'

export const ROW = 40
const GAP = 30
const EDGE = 20
const NARROW = 26
const WIDE = 150

export interface Columns {
  /** Of each step, from 1: where its tokens begin, and where the widest ends. */
  left: number[]
  right: number[]
  width: number
}

export interface Inks {
  plain: string
  faint: string
  line: string
  kept: string
  active: string
  paper: string
  serif: string
  sans: string
}

/** The part that is seen. */
export interface Seen {
  left: number
  top: number
  width: number
  height: number
}

const MARK = 8

/** What is written at each node: the token, and below it a number or two. */
export interface Texts {
  names: readonly string[]
  sums: readonly string[]
}

export function columns(drawn: CanvasRenderingContext2D, { nodes }: Search, layout: Layout, { names, sums }: Texts, { serif, sans }: Pick<Inks, 'serif' | 'sans'>): Columns {
  const left = [0]
  const right = [EDGE / 2]
  for (let step = 1; step <= layout.steps; step++) {
    const some = layout.columns[step] ?? []
    drawn.font = `15px ${serif}`
    let wide = some.reduce((most, one) => Math.max(most, drawn.measureText(names[one]!).width + (nodes[one]!.fate === 'live' ? 0 : 2 * MARK + 8)), NARROW)
    drawn.font = `10.5px ${sans}`
    wide = some.reduce((most, one) => Math.max(most, drawn.measureText(sums[one]!).width), wide)
    left.push(right[step - 1]! + GAP)
    right.push(left[step]! + Math.min(WIDE, wide))
  }
  return { left, right, width: right.at(-1)! + EDGE }
}

/** The middle of a row's tokens; the sum of its prefix stands below. */
const middle = (row: number) => row * ROW + ROW / 2 - 3

export function tree(
  drawn: CanvasRenderingContext2D,
  search: Search,
  layout: Layout,
  at: Columns,
  seen: Seen,
  active: ReadonlySet<number>,
  pointed: number | null,
  ink: Inks,
  texts: Texts,
): void {
  const { nodes } = search
  const { names, sums } = texts
  const { row, leads } = layout
  const high = seen.top + seen.height
  const wide = seen.left + seen.width
  drawn.translate(-seen.left, -seen.top)
  drawn.textBaseline = 'middle'
  drawn.textAlign = 'left'
  const strength = (one: number) => (active.has(one) ? 2 : Number.isFinite(leads[one]!) ? 1 : 0)

  for (const strong of [0, 1, 2])
    nodes.forEach(({ step, parent, probability }, one) => {
      if (strength(one) !== strong) return
      const [from, to] = [parent < 0 ? middle(0) : middle(row[parent]!), middle(row[one]!)]
      const [x, end] = [at.right[step - 1]! + 4, at.left[step]! - 5]
      if (end < seen.left || x - WIDE > wide || Math.max(from, to) < seen.top || Math.min(from, to) > high) return
      drawn.strokeStyle = strong === 2 ? ink.active : strong === 1 ? ink.kept : ink.line
      drawn.lineWidth = strong ? 0.9 + 1.6 * probability : 1
      drawn.globalAlpha = strong === 1 ? 0.7 : 1
      drawn.beginPath()
      // from the end of its own token to the end of the column, then to the child
      const start = parent < 0 ? x - 4 : at.left[step - 1]! + width(drawn, texts, parent, ink) + 4
      drawn.moveTo(Math.min(start, x), from)
      drawn.lineTo(x, from)
      drawn.bezierCurveTo(x + (end - x) * 0.5, from, x + (end - x) * 0.5, to, end, to)
      drawn.stroke()
      drawn.globalAlpha = 1
    })

  drawn.fillStyle = ink.plain
  drawn.beginPath()
  drawn.arc(at.right[0]! + 2, middle(0), 3, 0, 7)
  drawn.fill()

  nodes.forEach(({ step, fate }, one) => {
    const [x, y] = [at.left[step]!, middle(row[one]!)]
    if (x > wide || at.right[step]! + 30 < seen.left || y < seen.top - ROW || y > high + ROW) return
    const strong = strength(one)
    drawn.font = font(strong === 2, ink)
    drawn.fillStyle = strong === 2 ? ink.active : strong === 1 ? ink.plain : ink.faint
    drawn.fillText(names[one]!, x, y, WIDE)
    drawn.font = `10.5px ${ink.sans}`
    drawn.fillStyle = strong === 2 ? ink.active : ink.faint
    drawn.fillText(sums[one]!, x, y + 15)
    if (fate !== 'live') mark(drawn, x + width(drawn, texts, one, ink) + 4 + MARK, y, fate === 'finished', rank(search, layout, one), strong, ink)
    if (one === pointed) {
      drawn.strokeStyle = ink.active
      drawn.lineWidth = 1.5
      drawn.beginPath()
      drawn.roundRect(x - 5, y - 13, width(drawn, texts, one, ink) + 10, 36, 4)
      drawn.stroke()
    }
  })
}

const font = (bold: boolean, ink: Inks) => `${bold ? '600 ' : ''}15px ${ink.serif}`
const widths = new WeakMap<Texts, number[]>()

function width(drawn: CanvasRenderingContext2D, texts: Texts, one: number, ink: Inks): number {
  let known = widths.get(texts)
  if (!known) widths.set(texts, (known = []))
  if (known[one] === undefined) {
    const before = drawn.font
    drawn.font = font(true, ink)
    known[one] = Math.min(WIDE, drawn.measureText(texts.names[one]!).width)
    drawn.font = before
  }
  return known[one]!
}

/** Which output ends here, from 1. */
function rank({ hypotheses }: Search, { leads }: Layout, one: number): number | null {
  const found = leads[one]!
  return Number.isFinite(found) && hypotheses[found]!.branch.at(-1) === one ? found + 1 : null
}

/** A disc where a branch ended, with the place of its output; a ring where it was cut off; a small bar where it was given up. */
function mark(drawn: CanvasRenderingContext2D, x: number, y: number, finished: boolean, rank: number | null, strong: number, ink: Inks): void {
  const colour = strong === 2 ? ink.active : strong === 1 ? ink.kept : ink.faint
  drawn.fillStyle = drawn.strokeStyle = colour
  drawn.lineWidth = 1.2
  if (rank === null && !finished) {
    drawn.fillRect(x - MARK, y - 5, 1.5, 10)
    return
  }
  drawn.beginPath()
  drawn.arc(x, y, rank === null ? 3 : MARK, 0, 7)
  if (!finished) drawn.stroke()
  else drawn.fill()
  if (rank === null) return
  drawn.font = `600 10.5px ${ink.sans}`
  drawn.textAlign = 'center'
  drawn.fillStyle = finished ? ink.paper : colour
  drawn.fillText(String(rank), x, y + 0.5)
  drawn.textAlign = 'left'
}
