/** A head as it is shown, as a drawing of its own (SVG): its title and its sentence above, all words beside it, what is meant below. */

import { sum } from '../lib/equation'
import { ink, on, type Theme } from '../lib/ink'
import { type Label, largest, type Picture } from '../lib/look'
import { weight } from '../lib/numbers'
import { running } from '../lib/running'
import { ofRow, overview } from './lines'

export type Mode = 'lines' | 'text' | 'matrix'

export interface Figure {
  mode: Mode
  picture: Picture
  /** The row that is kept. */
  row: number | null
  title: string
  /** What was read, what was written, whose it is: a line each. */
  above: string[]
  /** What is seen, in sentences. */
  below: string[]
  /** Of rows and of columns. */
  names: readonly [string, string]
  /** A label is a word, and no piece of one. */
  whole: boolean
  /** Rows and columns are the same text. */
  same: boolean
  /** Full ink. */
  full: number
  theme: Theme
  /** A colour of the style sheet by its name. */
  colour: (name: string) => string
  /** How many pixels a text takes. */
  measure: (text: string, font: string) => number
}

/** Of the reader's system: a drawing that stands alone has no faces of the page. */
const SERIF = 'Georgia, "Noto Serif", "Times New Roman", serif'
const SANS = '"Segoe UI", "Noto Sans", "Helvetica Neue", Arial, sans-serif'
const MARGIN = 24
const HIGH = 25
const STRIP = 220
const COLUMN = 480
/** A square of a matrix, and the largest that a matrix may be. */
const CELL = 18
const SIDE = 1400
/** A drawing is at least as wide as its sentences need in lines of some length. */
const LEAST = 560

export interface Size {
  width: number
  height: number
}

export function figure(given: Figure): Size & { svg: string } {
  const { picture } = given
  const least = Math.max(LEAST, measured(given, given.title, 19, SERIF))
  const body = { lines, text, matrix }[given.mode](given, picture)
  const width = Math.max(least, body.width)
  const parts: string[] = [words(given, given.title, 0, 19, { size: 19, weight: 600 })]
  let y = 34
  for (const line of given.above.flatMap((one) => wrapped(given, one, width, 15, SERIF))) {
    parts.push(words(given, line, 0, y + 12, { size: 15, colour: '--soft' }))
    y += 22
  }
  y += 14
  parts.push(`<g transform="translate(0 ${short(y)})">${body.svg}</g>`)
  y += body.height + 18
  for (const line of given.below.flatMap((one) => wrapped(given, one, width, 13, SANS))) {
    parts.push(words(given, line, 0, y + 11, { size: 13, family: SANS, colour: '--soft' }))
    y += 19
  }
  const size = { width: Math.ceil(width + 2 * MARGIN), height: Math.ceil(y + 2 * MARGIN) }
  const svg = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}" height="${size.height}" viewBox="0 0 ${size.width} ${size.height}" role="img" aria-labelledby="title">`,
    `<title id="title">${safe([given.title, ...given.above, ...given.below].join('\n'))}</title>`,
    `<rect width="100%" height="100%" fill="${given.colour('--paper')}"/>`,
    `<g transform="translate(${MARGIN} ${MARGIN})">`,
    ...parts,
    '</g></svg>',
  ].join('\n')
  return { ...size, svg }
}

interface Body extends Size {
  svg: string
}

/** Two columns of words, and the lines that the page draws between them. */
function lines(given: Figure, picture: Picture): Body {
  const { row } = given
  const wide = (side: readonly Label[]) => Math.max(40, ...side.map(({ name }) => measured(given, name, 16, SERIF)))
  const most = Math.max(picture.rows.length, picture.columns.length)
  const left = Math.max(wide(picture.rows), measured(given, given.names[0], 12, SANS))
  const height = most * HIGH + 24
  const indent = (count: number) => 24 + ((most - count) * HIGH) / 2
  const at = { width: STRIP, row: (one: number) => indent(picture.rows.length) + (one + 0.5) * HIGH, column: (one: number) => indent(picture.columns.length) + (one + 0.5) * HIGH }
  const pen = new Pen()
  const drawn = pen as unknown as CanvasRenderingContext2D
  if (row === null) overview(drawn, picture, at, given.colour('--key'))
  else ofRow(drawn, picture, row, at, given.colour('--key'))
  const parts = [
    words(given, given.names[0], left, 11, { size: 12, family: SANS, colour: '--soft', anchor: 'end' }),
    words(given, given.names[1], left + STRIP + 14, 11, { size: 12, family: SANS, colour: '--soft' }),
  ]
  picture.rows.forEach((label, one) => {
    const colour = one === row ? '--query' : label.special ? '--faint' : '--ink'
    parts.push(words(given, label.name, left, at.row(one) + 5, { size: 16, colour, anchor: 'end', weight: one === row ? 600 : 400 }))
  })
  parts.push(`<g transform="translate(${short(left + 7)} 0)" fill="none" stroke-linecap="round">${pen.paths.join('')}</g>`)
  const start = left + STRIP + 14
  let right = 0
  picture.columns.forEach((label, one) => {
    const share = row === null ? 0 : picture.data[row * picture.columns.length + one]!
    const size = measured(given, label.name, 16, SERIF)
    if (share >= 0.005) {
      parts.push(box(start - 4, at.column(one) - HIGH / 2 + 1, size + 8, HIGH - 2, ink(given.theme, share), 4))
      parts.push(words(given, weight(share), start + size + 12, at.column(one) + 4, { size: 12, family: SANS, colour: '--soft' }))
    }
    parts.push(words(given, label.name, start, at.column(one) + 5, { size: 16, colour: label.special ? '--faint' : '--ink', ...(share >= 0.005 ? { fill: on(given.theme, share) } : {}) }))
    right = Math.max(right, size + (row === null ? 0 : 60))
  })
  return { svg: parts.join(''), width: start + right, height }
}

/** Running text: who looks is framed, what is looked at shaded. */
function text(given: Figure, picture: Picture): Body {
  const parts: string[] = []
  let y = 0
  const flow = (side: readonly Label[], share: (at: number) => number, framed: number | null) => {
    let x = 0
    for (const word of running(side, given.whole)) {
      const space = word.space ? measured(given, ' ', 17, SERIF) : 0
      const sizes = word.parts.map(({ text }) => measured(given, text, 17, SERIF))
      if (x && x + space + sum(sizes) > COLUMN) [x, y] = [0, y + 30]
      else if (x) x += space
      word.parts.forEach(({ at, text }, part) => {
        const size = sizes[part]!
        if (x && x + size > COLUMN) [x, y] = [0, y + 30] // the word alone is wider than a line
        const shade = share(at) / (given.full || 1)
        if (shade > 0.02) parts.push(box(x - 1, y, size + 2, 24, ink(given.theme, shade), 3))
        parts.push(words(given, text, x, y + 17, { size: 17, colour: side[at]!.special ? '--faint' : '--ink', ...(shade > 0.02 ? { fill: on(given.theme, shade) } : {}) }))
        if (at === framed) parts.push(`<rect x="${short(x - 2)}" y="${short(y)}" width="${short(size + 4)}" height="24" rx="3" fill="none" stroke="${given.colour('--query')}" stroke-width="2"/>`)
        x += size
      })
    }
    y += 30
  }
  const heading = (name: string) => {
    parts.push(words(given, name, 0, y + 11, { size: 12, family: SANS, colour: '--soft' }))
    y += 20
  }
  const share = (at: number) => (given.row === null ? 0 : picture.data[given.row * picture.columns.length + at]!)
  if (given.same) flow(picture.columns, share, given.row)
  else {
    heading(given.names[0])
    flow(picture.rows, () => 0, given.row)
    y += 8
    heading(given.names[1])
    flow(picture.columns, share, null)
  }
  return { svg: parts.join(''), width: COLUMN, height: y }
}

/** A square for each pair; names where there is room for them. */
function matrix(given: Figure, picture: Picture): Body {
  const [rows, columns] = [picture.rows.length, picture.columns.length]
  const cell = Math.min(CELL, SIDE / Math.max(rows, columns, 1))
  const named = cell >= 9
  const size = Math.min(14, cell)
  const wide = (side: readonly Label[]) => (named ? Math.max(0, ...side.map(({ name }) => measured(given, name, size, SERIF))) + 8 : 0)
  const [left, top] = [wide(picture.rows), wide(picture.columns) * 0.75 + (named ? 12 : 0)]
  const parts: string[] = []
  const colour = (at: number, label: Label) => (at === given.row ? '--query' : label.special ? '--faint' : '--ink')
  if (named) {
    picture.rows.forEach((label, at) => parts.push(words(given, label.name, left - 6, top + (at + 0.5) * cell + size / 3, { size, colour: colour(at, label), anchor: 'end' })))
    picture.columns.forEach((label, at) => {
      const place = `translate(${short(left + (at + 0.6) * cell)} ${short(top - 6)}) rotate(-45)`
      parts.push(`<g transform="${place}">${words(given, label.name, 0, 0, { size, colour: label.special ? '--faint' : '--ink' })}</g>`)
    })
  }
  const most = Math.max(given.full, largest(picture.data)) || 1
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      const share = picture.data[row * columns + column]! / most
      if (share >= 1 / 255) parts.push(box(left + column * cell, top + row * cell, cell, cell, ink(given.theme, share), 0))
    }
  parts.push(`<rect x="${short(left)}" y="${short(top)}" width="${short(columns * cell)}" height="${short(rows * cell)}" fill="none" stroke="${given.colour('--line')}"/>`)
  if (given.row !== null) parts.push(`<rect x="${short(left)}" y="${short(top + given.row * cell)}" width="${short(columns * cell)}" height="${short(cell)}" fill="none" stroke="${given.colour('--query')}"/>`)
  return { svg: parts.join(''), width: left + columns * cell + wide(picture.columns) * 0.75, height: top + rows * cell }
}

/** Takes what would be drawn on a canvas as paths of a drawing: so the lines are those of the page. */
class Pen {
  paths: string[] = []
  strokeStyle = ''
  globalAlpha = 1
  lineWidth = 1
  lineCap = 'round'
  #path = ''

  beginPath(): void {
    this.#path = ''
  }

  moveTo(x: number, y: number): void {
    this.#path += `M${short(x)} ${short(y)}`
  }

  bezierCurveTo(...places: number[]): void {
    this.#path += `C${places.map(short).join(' ')}`
  }

  stroke(): void {
    this.paths.push(`<path d="${this.#path}" stroke="${this.strokeStyle}" stroke-width="${short(this.lineWidth)}" stroke-opacity="${short(this.globalAlpha)}"/>`)
  }
}

interface Face {
  size: number
  family?: string
  weight?: number
  colour?: string
  fill?: string
  anchor?: string
}

function words({ colour }: Figure, said: string, x: number, y: number, face: Face): string {
  const { size, family = SERIF, weight: bold = 400, anchor = 'start' } = face
  return `<text x="${short(x)}" y="${short(y)}" font-family='${family}' font-size="${short(size)}" font-weight="${bold}" text-anchor="${anchor}" fill="${face.fill ?? colour(face.colour ?? '--ink')}">${safe(said)}</text>`
}

function box(x: number, y: number, width: number, height: number, fill: string, round: number): string {
  return `<rect x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"${round ? ` rx="${round}"` : ''} fill="${fill}"/>`
}

function measured({ measure }: Figure, said: string, size: number, family: string): number {
  return measure(said, `${size}px ${family}`)
}

/** A text in lines that are no wider; a word that is, is cut. */
function wrapped(given: Figure, said: string, width: number, size: number, family: string): string[] {
  const found: string[] = []
  let line = ''
  for (const word of said.split(/ +/).flatMap((one) => one.match(/[^]{1,60}/gu) ?? [])) {
    const longer = line ? `${line} ${word}` : word
    if (line && measured(given, longer, size, family) > width) {
      found.push(line)
      line = word
    } else line = longer
  }
  return line ? [...found, line] : found
}

/** As XML has it, without characters that it has no room for. */
function safe(said: string): string {
  const writable = said.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '')
  return writable.replace(/[&<>"]/g, (one) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[one]!)
}

function short(value: number): string {
  return String(Math.round(value * 100) / 100)
}
