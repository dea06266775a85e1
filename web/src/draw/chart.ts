/** Curves of a training, each kind in a strip of its own, over one common axis. */

import { share, tick, type Axis } from '../lib/axis'
import { inks, type Theme } from '../lib/ink'

export interface Curve {
  name: string
  x: ArrayLike<number>
  y: ArrayLike<number>
  ink: 'key' | 'query' | 'soft'
  /** Few and measured, each with a dot; else a thin line. */
  points: boolean
  /** The number of the point that is told. */
  told: number
}

export interface Panel {
  title: string
  unit: string
  curves: Curve[]
  axis: Axis
  high: number
  text: (value: number) => string
}

/** Rows of numbers as colours. */
export interface Heat {
  title: string
  unit: string
  names: string[]
  x: number[]
  /** By column, then row. */
  data: Float32Array
  axis: Axis
  told: number | null
  text: (value: number) => string
}

export interface Frame {
  width: number
  left: number
  right: number
  /** The lower axis, and where it is told. */
  x: Axis
  name: string
  cursor: { x: number; text: string } | null
  /** Where the weights were made that are kept. */
  kept: number | null
}

export interface Inks {
  plain: string
  soft: string
  faint: string
  line: string
  strong: string
  key: string
  query: string
  sheet: string
  sans: string
}

const TITLE = 26
const GAP = 16
const FOOT = 34
const HEAT = 14
const NAMED = 15

export function height(panels: readonly Panel[], heat: Heat | null): number {
  const curves = panels.reduce((sum, { high }) => sum + TITLE + high + GAP, 0)
  return curves + (heat ? TITLE + heat.names.length * HEAT + GAP : 0) + FOOT
}

/** Where each panel begins, and the heat strip below them. */
function tops(panels: readonly Panel[]): number[] {
  const found = [TITLE]
  for (const { high } of panels) found.push(found.at(-1)! + high + GAP + TITLE)
  return found
}

const along = (frame: Frame) => (x: number) => frame.left + share(frame.x, x) * (frame.width - frame.left - frame.right)
const down = ({ axis, high }: Panel, top: number) => (y: number) => top + high - share(axis, y) * high

/** All that stays while the cursor moves. */
export function chart(drawn: CanvasRenderingContext2D, panels: readonly Panel[], heat: Heat | null, picture: HTMLCanvasElement | null, frame: Frame, ink: Inks, theme: Theme): void {
  drawn.textBaseline = 'middle'
  const places = tops(panels)
  panels.forEach((panel, at) => {
    const top = places[at]!
    title(drawn, panel, frame, top, ink)
    grid(drawn, panel.axis, frame, top, panel.high, ink)
    for (const curve of panel.curves) line(drawn, curve, along(frame), down(panel, top), frame, top, panel.high, ink)
  })
  if (heat) strip(drawn, heat, picture, frame, places.at(-1)!, ink, theme)
  foot(drawn, frame, bottom(panels, heat), ink)
}

/** What is told of the point under the cursor, or else of the last. */
export function told(drawn: CanvasRenderingContext2D, panels: readonly Panel[], heat: Heat | null, frame: Frame, ink: Inks): void {
  drawn.textBaseline = 'middle'
  const places = tops(panels)
  if (frame.cursor) cursor(drawn, frame.cursor, frame, bottom(panels, heat), ink)
  panels.forEach((panel, at) => {
    const to = down(panel, places[at]!)
    if (frame.cursor) for (const curve of panel.curves) dot(drawn, curve, along(frame), to, ink)
    labels(drawn, panel, to, frame, ink)
  })
  if (!heat || heat.told === null) return
  drawn.font = `11px ${ink.sans}`
  drawn.textAlign = 'left'
  drawn.fillStyle = frame.cursor ? ink.plain : ink.soft
  heat.names.forEach((_, row) => {
    const value = heat.data[heat.told! * heat.names.length + row]!
    if (Number.isFinite(value)) drawn.fillText(heat.text(value), frame.width - frame.right + 10, places.at(-1)! + (row + 0.5) * HEAT)
  })
}

function bottom(panels: readonly Panel[], heat: Heat | null): number {
  return height(panels, heat) - FOOT - GAP
}

function strip(drawn: CanvasRenderingContext2D, heat: Heat, picture: HTMLCanvasElement | null, frame: Frame, top: number, ink: Inks, theme: Theme): void {
  title(drawn, heat, frame, top, ink)
  scale(drawn, heat, frame, top, theme, ink)
  drawn.imageSmoothingEnabled = false
  if (picture) drawn.drawImage(picture, frame.left, top, frame.width - frame.left - frame.right, heat.names.length * HEAT)
  drawn.font = `11px ${ink.sans}`
  drawn.textAlign = 'right'
  drawn.fillStyle = ink.soft
  heat.names.forEach((name, row) => drawn.fillText(name, frame.left - 8, top + (row + 0.5) * HEAT, frame.left - 8))
}

/** The colours of a heat strip, one dot of the screen wide each. */
export function colours(heat: Heat, x: Axis, width: number, theme: Theme): HTMLCanvasElement {
  const rows = heat.names.length
  const canvas = document.createElement('canvas')
  canvas.width = Math.max(1, Math.round(width))
  canvas.height = rows
  const image = new ImageData(canvas.width, rows)
  const dots = new Uint32Array(image.data.buffer)
  const table = new Uint32Array(inks(theme).buffer)
  const places = heat.x.map((one) => share(x, one) * canvas.width)
  places.forEach((place, at) => {
    const before = at ? (places[at - 1]! + place) / 2 : Math.max(0, place - (places[1] !== undefined ? (places[1] - place) / 2 : place))
    const after = at + 1 < places.length ? (place + places[at + 1]!) / 2 : place + (place - before)
    const [from, to] = [Math.max(0, Math.round(before)), Math.min(canvas.width, Math.max(Math.round(before) + 1, Math.round(after)))]
    for (let row = 0; row < rows; row++) {
      const value = heat.data[at * rows + row]!
      if (!(value > 0)) continue
      const colour = table[Math.round(Math.min(1, Math.max(0, share(heat.axis, value))) * 255)]!
      for (let dot = from; dot < to; dot++) dots[row * canvas.width + dot] = colour
    }
  })
  canvas.getContext('2d')!.putImageData(image, 0, 0)
  return canvas
}

function title(drawn: CanvasRenderingContext2D, { title, unit }: { title: string; unit: string }, frame: Frame, top: number, ink: Inks): void {
  drawn.textAlign = 'left'
  drawn.font = `600 12.5px ${ink.sans}`
  drawn.fillStyle = ink.plain
  drawn.fillText(title, frame.left, top - 13)
  const wide = drawn.measureText(title).width
  drawn.font = `12px ${ink.sans}`
  drawn.fillStyle = ink.soft
  drawn.fillText(unit, frame.left + wide + 7, top - 13)
}

function grid(drawn: CanvasRenderingContext2D, axis: Axis, frame: Frame, top: number, high: number, ink: Inks): void {
  drawn.font = `11px ${ink.sans}`
  drawn.textAlign = 'right'
  drawn.lineWidth = 1
  for (const one of axis.ticks) {
    const y = Math.round(top + high - share(axis, one) * high) + 0.5
    drawn.strokeStyle = ink.line
    drawn.beginPath()
    drawn.moveTo(frame.left, y)
    drawn.lineTo(frame.width - frame.right, y)
    drawn.stroke()
    drawn.fillStyle = ink.soft
    drawn.fillText(tick(axis, one), frame.left - 8, y)
  }
}

function line(
  drawn: CanvasRenderingContext2D,
  { x, y, ink: name, points }: Curve,
  at: (x: number) => number,
  down: (y: number) => number,
  frame: Frame,
  top: number,
  high: number,
  ink: Inks,
): void {
  drawn.save()
  drawn.beginPath()
  drawn.rect(frame.left - 6, top - 6, frame.width - frame.left - frame.right + 12, high + 12)
  drawn.clip()
  drawn.strokeStyle = drawn.fillStyle = ink[name]
  drawn.lineJoin = 'round'
  drawn.lineWidth = points ? 1.4 : 1.1
  drawn.beginPath()
  let pen = false
  for (let i = 0; i < x.length; i++) {
    const to = down(y[i]!)
    if (!Number.isFinite(to)) {
      pen = points && pen
      continue
    }
    if (pen) drawn.lineTo(at(x[i]!), to)
    else drawn.moveTo(at(x[i]!), to)
    pen = true
  }
  drawn.stroke()
  if (points || x.length === 1)
    for (let i = 0; i < x.length; i++) {
      const to = down(y[i]!)
      if (!Number.isFinite(to)) continue
      drawn.beginPath()
      drawn.arc(at(x[i]!), to, x.length > 120 ? 1.6 : 2.6, 0, 7)
      drawn.fill()
    }
  drawn.restore()
}

function dot(drawn: CanvasRenderingContext2D, { x, y, ink: name, told }: Curve, at: (x: number) => number, down: (y: number) => number, ink: Inks): void {
  const to = down(y[told] ?? NaN)
  if (!Number.isFinite(to)) return
  drawn.fillStyle = ink[name]
  drawn.strokeStyle = ink.sheet
  drawn.lineWidth = 1.5
  drawn.beginPath()
  drawn.arc(at(x[told]!), to, 4, 0, 7)
  drawn.fill()
  drawn.stroke()
}

/** Names and numbers stand where their curves end, apart from each other. */
function labels(drawn: CanvasRenderingContext2D, panel: Panel, down: (y: number) => number, frame: Frame, ink: Inks): void {
  const several = panel.curves.length > 1
  const below = several && frame.right < 110
  const room = below ? 2 * NAMED : NAMED + 1
  const placed = panel.curves
    .map((curve) => {
      let last = curve.y.length - 1
      while (last > 0 && !Number.isFinite(curve.y[last]!)) last--
      return { curve, y: down(curve.y[last] ?? NaN) }
    })
    .filter(({ y }) => Number.isFinite(y))
    .sort((a, b) => a.y - b.y)
  for (let i = 1; i < placed.length; i++) placed[i]!.y = Math.max(placed[i]!.y, placed[i - 1]!.y + room)
  const bottom = down(panel.axis.low) + 2
  for (let i = placed.length - 1, most = bottom; i >= 0; i--, most -= room) placed[i]!.y = Math.min(placed[i]!.y, most)
  const x = frame.width - frame.right + 10
  drawn.textAlign = 'left'
  for (const { curve, y } of placed) {
    const value = curve.y[curve.told]
    const text = value === undefined || !Number.isFinite(value) ? '–' : panel.text(value)
    drawn.fillStyle = ink[curve.ink]
    drawn.font = `600 12px ${ink.sans}`
    drawn.fillText(text, x, y)
    if (!several) continue
    const wide = drawn.measureText(text).width
    drawn.font = `12px ${ink.sans}`
    if (below) drawn.fillText(curve.name, x, y + 13, frame.right - 10)
    else drawn.fillText(curve.name, x + wide + 6, y, frame.right - wide - 16)
  }
}

function scale(drawn: CanvasRenderingContext2D, { axis }: Heat, frame: Frame, top: number, theme: Theme, ink: Inks): void {
  const narrow = frame.right < 110
  const wide = narrow ? 40 : 64
  const right = narrow ? frame.width - 4 : frame.width - frame.right
  drawn.font = `11px ${ink.sans}`
  drawn.fillStyle = ink.soft
  drawn.textAlign = 'right'
  const high = tick(axis, axis.high)
  drawn.fillText(high, right, top - 13)
  const from = right - drawn.measureText(high).width - 6 - wide
  const table = inks(theme)
  for (let dot = 0; dot < wide; dot++) {
    const at = Math.round((dot / (wide - 1)) * 255) * 4
    drawn.fillStyle = `rgb(${table[at]} ${table[at + 1]} ${table[at + 2]})`
    drawn.fillRect(from + dot, top - 17, 1, 8)
  }
  drawn.strokeStyle = ink.line
  drawn.lineWidth = 1
  drawn.strokeRect(from - 0.5, top - 17.5, wide + 1, 9)
  drawn.fillStyle = ink.soft
  drawn.fillText(tick(axis, axis.low), from - 6, top - 13)
}

function foot(drawn: CanvasRenderingContext2D, frame: Frame, bottom: number, ink: Inks): void {
  const right = frame.width - frame.right
  const at = along(frame)
  drawn.strokeStyle = ink.strong
  drawn.lineWidth = 1
  drawn.beginPath()
  drawn.moveTo(frame.left, bottom + 0.5)
  drawn.lineTo(right, bottom + 0.5)
  drawn.stroke()
  drawn.font = `11px ${ink.sans}`
  drawn.fillStyle = ink.soft
  for (const one of frame.x.ticks) {
    const x = at(one)
    drawn.beginPath()
    drawn.moveTo(Math.round(x) + 0.5, bottom)
    drawn.lineTo(Math.round(x) + 0.5, bottom + 4)
    drawn.stroke()
    drawn.textAlign = x < frame.left + 12 ? 'left' : 'center'
    drawn.fillText(tick(frame.x, one), x, bottom + 14)
  }
  drawn.textAlign = 'left'
  drawn.fillText(frame.name, right + 22, bottom + 14, frame.right - 22)
  if (frame.kept === null) return
  const x = at(frame.kept)
  drawn.setLineDash([2, 3])
  rule(drawn, x, bottom, ink.faint)
  drawn.setLineDash([])
  drawn.textAlign = x > right - 60 ? 'right' : 'center'
  drawn.fillText('weights kept', x, TITLE - 13)
}

function cursor(drawn: CanvasRenderingContext2D, { x, text }: { x: number; text: string }, frame: Frame, bottom: number, ink: Inks): void {
  const place = along(frame)(x)
  rule(drawn, place, bottom, ink.query)
  drawn.font = `600 11px ${ink.sans}`
  drawn.textAlign = 'center'
  const wide = drawn.measureText(text).width / 2 + 6
  const middle = Math.max(wide, Math.min(frame.width - wide, place))
  drawn.fillStyle = ink.sheet
  drawn.fillRect(middle - wide, bottom + 5, 2 * wide, 18)
  drawn.fillStyle = ink.query
  drawn.fillText(text, middle, bottom + 14)
}

function rule(drawn: CanvasRenderingContext2D, x: number, bottom: number, colour: string): void {
  drawn.strokeStyle = colour
  drawn.lineWidth = 1
  drawn.beginPath()
  drawn.moveTo(Math.round(x) + 0.5, TITLE - 4)
  drawn.lineTo(Math.round(x) + 0.5, bottom)
  drawn.stroke()
}
