/** From a weight to a colour, in light and dark: one hue, luminance that rises or falls all the way. */

type Rgb = readonly [number, number, number]

const LIGHT: readonly Rgb[] = [[255, 255, 255], [219, 229, 250], [160, 187, 242], [84, 128, 222], [26, 79, 196], [12, 40, 118]]
const DARK: readonly Rgb[] = [[24, 25, 29], [28, 41, 74], [32, 66, 134], [54, 108, 196], [121, 184, 255], [222, 239, 255]]

function ramp(stops: readonly Rgb[]): Uint8ClampedArray {
  const found = new Uint8ClampedArray(256 * 4)
  for (let i = 0; i < 256; i++) {
    const place = (i / 255) * (stops.length - 1)
    const low = Math.min(Math.floor(place), stops.length - 2)
    for (let c = 0; c < 3; c++) found[i * 4 + c] = stops[low]![c]! + (stops[low + 1]![c]! - stops[low]![c]!) * (place - low)
    found[i * 4 + 3] = 255
  }
  return found
}

const RAMPS = { light: ramp(LIGHT), dark: ramp(DARK) }

export type Theme = 'light' | 'dark'

/** Red, green, blue and opacity for each byte. */
export function inks(theme: Theme): Uint8ClampedArray {
  return RAMPS[theme]
}

export function ink(theme: Theme, share: number): string {
  const at = Math.round(Math.min(1, Math.max(0, share)) * 255) * 4
  const [r, g, b] = RAMPS[theme].subarray(at, at + 3)
  return `rgb(${r} ${g} ${b})`
}

/** Text that can be read on it: its contrast is 4.5 at least. */
export function on(theme: Theme, share: number): string {
  if (theme === 'light') return share > 0.65 ? '#ffffff' : share > 0.5 ? '#000000' : '#1d1d1f'
  return share > 0.615 ? '#000000' : share > 0.55 ? '#ffffff' : '#e9e7e2'
}

/** Colours that canvas drawings share with the style sheet. */
export function colour(element: Element, name: string): string {
  return getComputedStyle(element).getPropertyValue(name).trim()
}
