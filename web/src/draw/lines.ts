/** Lines from the tokens that look to those that are looked at. */

import type { Picture } from '../lib/look'

export interface Strip {
  width: number
  /** Where the middle of each row and column is. */
  row: (row: number) => number
  column: (column: number) => number
}

/** Below this a line would hardly be seen; of many that are as strong fifty are drawn at most. */
const FAINT = 0.02
/** Of each row, how many lines are drawn while none is pointed at, and how strong they must be. */
const EACH = 3
const STRONG = 0.08

/** Whether every row looks at all it sees so evenly that no line stands out. */
export function even({ rows, columns, data }: Picture): boolean {
  return rows.length > 0 && columns.length > 0 && data.every((weight) => weight < STRONG)
}

export function ofRow(drawn: CanvasRenderingContext2D, picture: Picture, row: number, at: Strip, colour: string): void {
  const width = picture.columns.length
  for (let column = 0; column < width; column++) {
    const weight = picture.data[row * width + column]!
    if (weight > FAINT) line(drawn, at.row(row), at.column(column), at.width, weight, colour, 1)
  }
}

export function ofColumn(drawn: CanvasRenderingContext2D, picture: Picture, column: number, at: Strip, colour: string): void {
  for (let row = 0; row < picture.rows.length; row++) {
    const weight = picture.data[row * picture.columns.length + column]!
    if (weight > FAINT) line(drawn, at.row(row), at.column(column), at.width, weight, colour, 1)
  }
}

/** All rows at once, faintly: only what each gives most to. */
export function overview(drawn: CanvasRenderingContext2D, picture: Picture, at: Strip, colour: string): void {
  const width = picture.columns.length
  for (let row = 0; row < picture.rows.length; row++) {
    const weights = picture.data.subarray(row * width, (row + 1) * width)
    const bound = Math.max(STRONG, Float32Array.from(weights).sort().at(-EACH) ?? 0)
    for (let column = 0; column < width; column++)
      if (weights[column]! >= bound) line(drawn, at.row(row), at.column(column), at.width, weights[column]!, colour, 0.55)
  }
}

function line(drawn: CanvasRenderingContext2D, from: number, to: number, width: number, weight: number, colour: string, opacity: number): void {
  drawn.strokeStyle = colour
  drawn.globalAlpha = (0.12 + 0.83 * Math.min(1, weight)) * opacity
  drawn.lineWidth = 0.75 + 4.25 * Math.min(1, weight)
  drawn.lineCap = 'round'
  drawn.beginPath()
  drawn.moveTo(2, from)
  drawn.bezierCurveTo(width * 0.45, from, width * 0.55, to, width - 2, to)
  drawn.stroke()
  drawn.globalAlpha = 1
}
