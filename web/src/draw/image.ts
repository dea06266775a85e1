import type { Grid } from '../lib/payload'

/** Pixels of 0 to 255, height by width by one or three channels, as a picture of their size. */
export function image({ shape, data }: Grid): HTMLCanvasElement {
  const [high, wide, channels] = shape as [number, number, number]
  const canvas = document.createElement('canvas')
  canvas.width = wide
  canvas.height = high
  const dots = new ImageData(wide, high)
  for (let at = 0; at < wide * high; at++) {
    for (let c = 0; c < 3; c++) dots.data[at * 4 + c] = data[at * channels + Math.min(c, channels - 1)]!
    dots.data[at * 4 + 3] = 255
  }
  canvas.getContext('2d')!.putImageData(dots, 0, 0)
  return canvas
}
