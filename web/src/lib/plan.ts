/** Where the boxes of Figure 1 stand, from the bottom up: y is 0 below all, and negative above. */

import { adds, aside, boxesOf, type Box, type FigureValues, title, weighs } from './architecture'
import type { Model, Stack } from './types'

export interface Placed {
  box: Box
  lines: string[]
  weighs: string
  x: number
  y: number
  wide: number
  high: number
}

export interface Column {
  stack: Stack
  middle: number
  placed: Placed[]
  /** Around the layer that is drawn, with how many there are. */
  frame: { x: number; y: number; wide: number; high: number; layers: number }
  /** Along which a vector passes by a sub-layer; and from positions to the attention that they act in. */
  residuals: string[]
  dotted: string[]
  /** Upwards from box to box; into attention with three tips, for query, key and value. */
  arrows: { from: number; to: number; tips: number[]; size: string; x: number; y: number }[]
  /** On which side of the arrows their sizes stand: −1 before, 1 behind. */
  beside: -1 | 1
  /** What leaves it. */
  size: string
  top: number
}

export interface Plan {
  width: number
  height: number
  columns: Column[]
  /** From the encoder to what reads it, with what passes there. */
  links: { path: string; size: string; x: number; y: number }[]
}

type Drawn = Pick<Model, 'writes' | 'image' | 'masked' | 'stacks' | 'd_model'>
type Of<T> = Partial<Record<Stack, T>>

const [GAP, SUM, ASIDE, ENDS] = [26, 18, 24, 24]
/** Room below a layer, more than between boxes: its frame ends there, and what passes by a sub-layer leaves within it. */
const MORE = 14

/** All that is drawn of a model in columns so wide: of each stack one layer, of its length in tokens. */
export function plan(values: FigureValues, model: Drawn, layers: Of<number>, lengths: Of<number>, wide: number): Plan {
  const boxes = boxesOf(values)
  const stacks = [...new Set(boxes.map(({ stack }) => stack))].filter((stack): stack is Stack => stack !== '')
  const narrow = wide < 190
  const [side, between] = narrow ? [20, 34] : [48, 84]
  const columns = stacks.map((stack, number) => {
    // what makes the decoder's first state stands on the encoder; what follows the last stack on that
    const own = boxes.filter((box) => (box.part === 'bridge' ? number === 0 : box.stack === stack || (box.stack === '' && number === stacks.length - 1)))
    const placed = stood(own.filter(({ layer }) => !layer || layer === layers[stack]), values, model, { left: side + number * (wide + between), wide, narrow, outside: number ? 1 : -1 })
    const most = Math.max(...own.map(({ layer }) => layer))
    return column(stack, placed, most, values, { wide, narrow, outside: number ? 1 : -1, length: lengths[stack] ?? 0, size: `${lengths[stack] ?? '…'} × ${model.d_model}` })
  })
  const links = linked(columns, wide, between, narrow)
  const height = 2 * ENDS - Math.min(...columns.map(({ top }) => top))
  return { width: 2 * side + stacks.length * wide + (stacks.length - 1) * between, height, columns, links }
}

/** The boxes of a column, the lowest first. */
function stood(boxes: readonly Box[], values: FigureValues, model: Drawn, { left, wide, narrow, outside }: { left: number; wide: number; narrow: boolean; outside: number }): Placed[] {
  let y = 0
  return boxes.map((box, at) => {
    const [round, beside] = [adds(box), aside(values, box)]
    const high = round ? SUM : beside ? (narrow ? 36 : ASIDE) : narrow ? 46 : 38
    y -= GAP + high + (box.layer && !boxes[at - 1]?.layer ? below(values) : 0)
    const text = title(box, values, model)
    const lines = narrow && (beside || text.length > 19) ? halves(text) : [text]
    const half = wide / 2 - 6
    const x = round ? left + (wide - SUM) / 2 : beside && outside < 0 ? left + wide - half : left
    return { box, lines, weighs: weighs(box), x, y, wide: round ? SUM : beside ? half : wide, high }
  })
}

function below({ sizes }: FigureValues): number {
  return sizes.cell ? 0 : MORE
}

function column(stack: Stack, placed: Placed[], layers: number, values: FigureValues, { wide, narrow, outside, size, length }: { wide: number; narrow: boolean; outside: number; size: string; length: number }): Column {
  const middle = placed[0]!.x + wide / 2
  const passed = placed.filter(({ box }) => !aside(values, box))
  const inside = placed.filter(({ box }) => box.layer)
  const pill = placed.find(({ box }) => aside(values, box))
  const beside = outside > 0 || placed.some(({ box }) => box.part === 'bridge') ? -1 : 1
  const arrows = passed.map(({ box, y, high }, at) => {
    const [before, to, tips] = [passed[at - 1], y + high, box.part === 'attention' ? [-30, 0, 30] : [0]]
    const [from, enters] = [before ? before.y : 0, box.layer !== 0 && !before?.box.layer]
    const hidden = enters && pill // it stands where the size would
    const forked = tips.length > 1 && !enters
    return { from, to, tips, size: hidden || (forked && narrow) ? '' : before ? size : `${length} ${length === 1 ? 'token' : 'tokens'}`, x: middle + beside * (forked ? 38 : 8), y: enters && before ? from - 5 : (from + to) / 2 + 4 }
  })
  const last = passed.at(-1)!.y
  arrows.push({ from: last, to: last - GAP, tips: [0], size, x: middle + beside * 8, y: last - GAP / 2 + 4 })
  const edge = middle + (outside * wide) / 2
  const residuals = inside.flatMap((end) => {
    const begin = begins(inside, end, values)
    if (end.box.part === 'recurrence') return [loop(end, edge, outside * (narrow ? 9 : 16))]
    if (!begin) return []
    const [from, to, out] = [begin.y + begin.high + (tipped(begin) ? GAP / 2 + 6 : GAP / 2 + 1), end.y + end.high / 2, edge + outside * (narrow ? 10 : 18)]
    const turn = (y: number, other: number) => `${out - outside * 7} ${y}Q${out} ${y} ${out} ${other}`
    return [`M${middle} ${from}L${turn(from, from - 7)}V${to + 7}Q${out} ${to} ${out - outside * 7} ${to}H${adds(end.box) ? middle + (outside * SUM) / 2 : edge}`]
  })
  const attention = inside.find(({ box }) => box.part === 'attention')
  const dotted = pill && attention ? [`M${pill.x + (outside < 0 ? pill.wide - 10 : 10)} ${pill.y}V${attention.y + attention.high}`] : []
  const [above, under] = [Math.min(...inside.map(({ y }) => y)), Math.max(...inside.map(({ y, high }) => y + high))]
  const [out, gap] = narrow ? [15, 5] : [28, 10]
  const frame = { x: middle - wide / 2 - (outside < 0 ? out : gap), y: above - 8, wide: wide + out + gap, high: under - above + GAP + below(values) - 7, layers }
  return { stack, middle, placed, frame, residuals, dotted, arrows, beside, size, top: last - GAP }
}

function tipped({ box }: Placed): boolean {
  return box.part === 'attention'
}

/** What a state gives to the next one: a line from a box to itself. */
function loop({ y, high }: Placed, edge: number, by: number): string {
  return `M${edge} ${y + 9}h${by / 2}q${by / 2} 0 ${by / 2} 7v${high - 32}q0 7 ${-by / 2} 7h${-by / 2}`
}

/** The box before which a residual connection leaves that ends in this one; nothing where none does. */
function begins(inside: readonly Placed[], end: Placed, { sizes }: FigureValues): Placed | undefined {
  const post = sizes.norm_place !== 'pre'
  const part = /^(.+)_(add|norm)$/.exec(end.box.part)
  if (!part || (part[2] === 'norm') !== post) return undefined
  return inside.find(({ box }) => box.part === (post ? part[1] : `${part[1]}_norm`))
}

function linked(columns: Column[], wide: number, between: number, narrow: boolean): Plan['links'] {
  const [reads, writes] = columns
  if (!reads || !writes) return []
  const bridge = reads.placed.find(({ box }) => box.part === 'bridge')
  const middle = (part: string) => {
    const found = writes.placed.find(({ box }) => box.part === part)
    return found && found.y + found.high / 2
  }
  const [edge, to] = [reads.middle + wide / 2, writes.middle - wide / 2]
  const found: Plan['links'] = []
  const add = (begin: number, from: number, x: number, end: number | undefined, size: string) => {
    if (end === undefined) return
    const round = Math.sign(end - from || 1) * Math.min(8, Math.abs(end - from) / 2)
    found.push({ path: `M${begin} ${from}H${x - 8}Q${x} ${from} ${x} ${from + round}V${end - round}Q${x} ${end} ${x + 8} ${end}H${to}`, size: narrow || Math.abs(end - from) < 70 ? '' : size, x, y: (from + end) / 2 })
  }
  const leaves = bridge ? bridge.y + bridge.high + GAP / 2 : reads.top
  add(reads.middle, leaves, edge + between * (bridge ? 0.66 : 0.5), middle('cross'), reads.size)
  if (bridge) {
    add(edge, bridge.y + bridge.high / 2, edge + between * 0.33, middle('recurrence'), '')
    reads.arrows.pop()
  }
  return found
}

function halves(text: string): string[] {
  const words = text.split(' ')
  const half = Math.ceil(words.length / 2)
  return [words.slice(0, half).join(' '), words.slice(half).join(' ')]
}
