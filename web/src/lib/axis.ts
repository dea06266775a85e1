/** Axes with few and round numbers. */

export interface Axis {
  low: number
  high: number
  log: boolean
  ticks: number[]
  /** Between ticks; 0 where it is not the same everywhere. */
  step: number
}

/** The smallest of 1, 2 and 5 times a power of ten that is not below a size. */
export function round(size: number): number {
  const power = 10 ** Math.floor(Math.log10(size))
  const found = [1, 2, 5, 10].find((one) => one * power >= size * (1 - 1e-9))!
  return found * power
}

/** From below the lowest number to above the highest, in at most so many parts. */
export function linear(low: number, high: number, parts: number): Axis {
  if (high <= low) [low, high] = low === 0 ? [0, 1] : [Math.min(low, low * 2, 0), Math.max(low, low * 2, 0)]
  let step = round((high - low) / parts)
  const ends = () => [Math.floor(low / step + 1e-9), Math.ceil(high / step - 1e-9)] as const
  while (ends()[1] - ends()[0] > parts) step = round(step * 1.5)
  const [first, last] = ends()
  const ticks = Array.from({ length: last - first + 1 }, (_, at) => exact((first + at) * step))
  return { low: ticks[0]!, high: ticks.at(-1)!, log: false, ticks, step }
}

/** As `linear`, but each part is a factor; for numbers above zero. */
export function logarithmic(low: number, high: number, parts: number): Axis {
  const places: number[] = []
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) for (const one of [1, 2, 5]) places.push(exact(one * 10 ** power))
  const first = places.findLastIndex((one) => one <= low * (1 + 1e-9))
  const last = places.findIndex((one) => one >= high * (1 - 1e-9))
  let ticks = places.slice(Math.max(0, first), Math.max(last, first + 1) + 1)
  const [bottom, top] = [ticks[0]!, ticks.at(-1)!]
  const powers = ticks.filter((one) => Number.isInteger(Math.round(Math.log10(one) * 1e9) / 1e9))
  if (ticks.length > parts + 1 && powers.length > 1) ticks = powers
  const each = Math.ceil(ticks.length / (parts + 1))
  ticks = ticks.filter((_, at) => at % each === 0)
  return { low: bottom, high: top, log: true, ticks, step: 0 }
}

/** From zero to a number as it stands, with ticks at round numbers within. */
export function upTo(high: number, parts: number): Axis {
  const step = round(Math.max(high, 1e-9) / parts)
  const ticks = Array.from({ length: Math.floor(high / step + 1e-9) + 1 }, (_, at) => exact(at * step))
  return { low: 0, high: Math.max(high, 1e-9), log: false, ticks, step }
}

/** Where a number is, from 0 at the low end to 1 at the high end. */
export function share({ low, high, log }: Axis, value: number): number {
  return log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low)
}

/** A tick's number. */
export function tick({ step }: Axis, value: number): string {
  if (value === 0) return '0'
  const size = Math.abs(step || value)
  const places = Math.max(0, -Math.floor(Math.log10(size) + 1e-9))
  const text = places > 5 ? power(value) : value.toLocaleString('en-US', { minimumFractionDigits: places, maximumFractionDigits: places })
  return text.replace('-', '−')
}

const RAISED = '⁰¹²³⁴⁵⁶⁷⁸⁹'

function power(value: number): string {
  const [head, tail] = value.toExponential().split('e') as [string, string]
  const raised = [...tail.replace('+', '')].map((c) => (c === '-' ? '⁻' : RAISED[Number(c)]!)).join('')
  return `${head === '1' ? '' : `${head}·`}10${raised}`
}

/** Without the dust of binary fractions. */
function exact(value: number): number {
  return Number(value.toPrecision(12))
}
