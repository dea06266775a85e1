/** Which part of a plane is seen, and how large: y grows upwards there, and downwards on the screen. */

export interface Lens {
  /** What lies in the middle of the drawing. */
  readonly x: number
  readonly y: number
  /** Pixels for one unit. */
  readonly scale: number
}

export interface Size {
  readonly width: number
  readonly height: number
}

export interface Point {
  readonly x: number
  readonly y: number
}

/** All places, as x and y in turn, within the drawing and its margin. */
export function fitted(places: ArrayLike<number>, { width, height }: Size, margin: number): Lens {
  let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity]
  for (let at = 0; at + 1 < places.length; at += 2) {
    left = Math.min(left, places[at]!)
    right = Math.max(right, places[at]!)
    low = Math.min(low, places[at + 1]!)
    high = Math.max(high, places[at + 1]!)
  }
  if (left > right) return { x: 0, y: 0, scale: 1 }
  const [wide, tall] = [Math.max(1, width - 2 * margin), Math.max(1, height - 2 * margin)]
  const scale = Math.min(wide / Math.max(right - left, 1e-12), tall / Math.max(high - low, 1e-12))
  return { x: (left + right) / 2, y: (low + high) / 2, scale: Number.isFinite(scale) && scale < 1e11 ? scale : 1 }
}

export function onScreen(lens: Lens, { width, height }: Size, x: number, y: number): Point {
  return { x: width / 2 + (x - lens.x) * lens.scale, y: height / 2 - (y - lens.y) * lens.scale }
}

/** Larger by a factor; what lies under `at` stays there. */
export function zoomed(lens: Lens, { width, height }: Size, by: number, at: Point, least: number, most: number): Lens {
  const scale = Math.min(most, Math.max(least, lens.scale * by))
  const [right, down] = [at.x - width / 2, at.y - height / 2]
  return { x: lens.x + right / lens.scale - right / scale, y: lens.y - down / lens.scale + down / scale, scale }
}

/** What is drawn moved by so many pixels to the right and down. */
export function shifted(lens: Lens, right: number, down: number): Lens {
  return { ...lens, x: lens.x - right / lens.scale, y: lens.y + down / lens.scale }
}
