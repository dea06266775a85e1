/** From a number below or above zero to a colour: rust below, the paper at zero, blue above, in light and dark. */

import type { Theme } from './ink'

type Rgb = readonly [number, number, number]

/** From −1 over 0 to 1. */
const LIGHT: readonly Rgb[] = [[112, 38, 4], [179, 64, 10], [219, 134, 92], [245, 217, 200], [255, 255, 255], [219, 229, 250], [130, 164, 236], [26, 79, 196], [12, 40, 118]]
const DARK: readonly Rgb[] = [[255, 214, 178], [255, 165, 102], [176, 92, 38], [84, 46, 24], [24, 25, 29], [28, 44, 82], [48, 98, 180], [132, 187, 255], [222, 239, 255]]
const HALF = 127

function ramp(stops: readonly Rgb[]): Uint8ClampedArray {
  const count = 2 * HALF + 1
  const found = new Uint8ClampedArray(count * 4)
  for (let i = 0; i < count; i++) {
    const place = (i / (count - 1)) * (stops.length - 1)
    const low = Math.min(Math.floor(place), stops.length - 2)
    for (let c = 0; c < 3; c++) found[i * 4 + c] = stops[low]![c]! + (stops[low + 1]![c]! - stops[low]![c]!) * (place - low)
    found[i * 4 + 3] = 255
  }
  return found
}

const RAMPS = { light: ramp(LIGHT), dark: ramp(DARK) }

/** Which of the 255 colours a number from −1 to 1 has; 127 is zero. */
export function step(share: number): number {
  return Math.round(Math.min(1, Math.max(-1, share || 0)) * HALF) + HALF
}

/** Red, green, blue and opacity for each step. */
export function steps(theme: Theme): Uint8ClampedArray {
  return RAMPS[theme]
}

export function signedInk(theme: Theme, share: number): string {
  const at = step(share) * 4
  const [r, g, b] = RAMPS[theme].subarray(at, at + 3)
  return `rgb(${r} ${g} ${b})`
}

/** Text that can be read on it. */
export function onSigned(theme: Theme, share: number): string {
  const size = Math.abs(share)
  if (theme === 'light') return size > 0.6 ? '#ffffff' : '#1d1d1f'
  return size > 0.62 ? '#101114' : '#e9e7e2'
}

/** The largest distance from zero. */
export function reach(data: ArrayLike<number>): number {
  let most = 0
  for (let at = 0; at < data.length; at++) most = Math.max(most, Math.abs(data[at]!))
  return most
}
