import { classroom } from '../lib/classroom.svelte'
import type { Point } from '../lib/lens'

/** A canvas as sharp as the screen. */
export function sized(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const dots = Math.min((window.devicePixelRatio || 1) * classroom.scale, 16_000 / Math.max(1, width, height))
  const [wide, high] = [Math.round(width * dots), Math.round(height * dots)]
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide
    canvas.height = high
    canvas.style.width = `${width}px`
    canvas.style.height = `${height}px`
  }
  const drawn = canvas.getContext('2d')!
  drawn.setTransform(dots, 0, 0, dots, 0, 0)
  drawn.clearRect(0, 0, width, height)
  return drawn
}

/** Where the pointer is on what it is over, in the pixels that drawings count. */
export function spotted({ offsetX, offsetY }: MouseEvent): Point {
  return { x: offsetX / classroom.scale, y: offsetY / classroom.scale }
}

/** At most one drawing a frame, the last that was asked for; again where all is drawn larger. */
export function framed(draw: () => void): () => void {
  let waiting = false
  const ask = () => {
    if (waiting) return
    waiting = true
    requestAnimationFrame(() => {
      waiting = false
      draw()
    })
  }
  $effect(() => {
    void classroom.scale
    ask()
  })
  return ask
}
