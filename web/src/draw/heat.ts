/** Weights as pictures, one dot a cell. */

import { inks, type Theme } from '../lib/ink'

/** Bytes, each the darkest at 255. */
export function bytes(canvas: HTMLCanvasElement, data: Uint8Array, rows: number, columns: number, theme: Theme): void {
  canvas.width = columns
  canvas.height = rows
  const image = new ImageData(columns, rows)
  const dots = new Uint32Array(image.data.buffer)
  const table = new Uint32Array(inks(theme).buffer)
  for (let i = 0; i < data.length; i++) dots[i] = table[data[i]!]!
  canvas.getContext('2d')!.putImageData(image, 0, 0)
}

/** Numbers, each the darkest at `largest`. */
export function numbers(data: Float32Array, rows: number, columns: number, largest: number, theme: Theme): HTMLCanvasElement {
  const canvas = document.createElement('canvas')
  const share = Uint8Array.from(data, (value) => Math.min(255, Math.max(0, Math.round((value / (largest || 1)) * 255))))
  bytes(canvas, share, rows, columns, theme)
  return canvas
}
