/** Numbers below and above zero as a picture, one dot a cell. */

import type { Theme } from '../lib/ink'
import { step, steps } from '../lib/signed'

export function field(data: ArrayLike<number>, rows: number, columns: number, largest: number, theme: Theme): HTMLCanvasElement {
  const canvas = document.createElement('canvas')
  canvas.width = columns
  canvas.height = rows
  const image = new ImageData(columns, rows)
  const dots = new Uint32Array(image.data.buffer)
  const table = new Uint32Array(steps(theme).buffer)
  for (let at = 0; at < rows * columns; at++) dots[at] = table[step(data[at]! / (largest || 1))]!
  canvas.getContext('2d')!.putImageData(image, 0, 0)
  return canvas
}
