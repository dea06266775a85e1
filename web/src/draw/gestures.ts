/** A drawing that is moved by dragging and magnified by two fingers, or by the wheel with the control key. */

import type { Point } from '../lib/lens'
import { spotted } from './canvas.svelte'

export interface Gestures {
  move: (right: number, down: number) => void
  zoom: (by: number, at: Point) => void
  /** Where the pointer is; null: nowhere. */
  over: (at: Point | null) => void
  click: (at: Point) => void
}

const STILL = 4

export function gestures(node: HTMLElement, given: Gestures) {
  let now = given
  let dragged: (Point & { moved: boolean }) | null = null
  const fingers = new Map<number, Point>()
  const at = spotted
  const spread = () => {
    const [a, b] = [...fingers.values()] as [Point, Point]
    return { far: Math.hypot(a.x - b.x, a.y - b.y), x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 }
  }
  const heard: { [name: string]: (event: never) => void } = {
    pointerdown(event: PointerEvent) {
      node.setPointerCapture(event.pointerId)
      fingers.set(event.pointerId, at(event))
      dragged = { ...at(event), moved: fingers.size > 1 }
    },
    pointermove(event: PointerEvent) {
      const place = at(event)
      if (fingers.size === 2 && fingers.has(event.pointerId)) {
        const before = spread()
        fingers.set(event.pointerId, place)
        const after = spread()
        now.move(after.x - before.x, after.y - before.y)
        now.zoom(after.far / Math.max(1, before.far), after)
      } else if (dragged && fingers.size === 1) {
        if (!dragged.moved && Math.hypot(place.x - dragged.x, place.y - dragged.y) <= STILL) return
        now.move(place.x - dragged.x, place.y - dragged.y)
        dragged = { ...place, moved: true }
      } else now.over(place)
    },
    pointerup(event: PointerEvent) {
      fingers.delete(event.pointerId)
      if (dragged && !dragged.moved) now.click(at(event))
      if (!fingers.size) dragged = null
    },
    pointercancel(event: PointerEvent) {
      fingers.delete(event.pointerId)
      dragged = null
    },
    pointerleave() {
      if (!fingers.size) now.over(null)
    },
    wheel(event: WheelEvent) {
      if (!event.ctrlKey && !event.metaKey) return
      event.preventDefault()
      now.zoom(Math.exp(-event.deltaY / 200), at(event))
    },
  }
  for (const [name, listener] of Object.entries(heard)) node.addEventListener(name, listener as EventListener, { passive: false })
  return {
    update: (next: Gestures) => (now = next),
    destroy: () => {
      for (const [name, listener] of Object.entries(heard)) node.removeEventListener(name, listener as EventListener)
    },
  }
}
