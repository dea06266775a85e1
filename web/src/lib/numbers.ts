/** Numbers as people read them. */

/** A weight or probability: 0.83; small ones keep a digit that says something. */
export function weight(value: number): string {
  if (value > 0 && value < 0.005) return value < 0.0005 ? '< 0.001' : value.toFixed(3)
  return value.toFixed(2)
}

export function percent(value: number): string {
  const hundred = value * 100
  if (hundred > 0 && hundred < 0.5) return '< 1 %'
  if (hundred < 100 && hundred > 99.5) return '> 99 %'
  return `${hundred.toFixed(0)} %`
}

/** No line is broken between a number and its sign. */
export function unbroken(text: string): string {
  return text.replace(/([<>] )?(\S+) %/g, (all) => all.replaceAll(' ', '\u00a0'))
}

/** How much more the larger of two is than the smaller: "19 times", "1.2 times". */
export function times(larger: number, smaller: number): string {
  const ratio = larger / smaller
  if (!Number.isFinite(ratio)) return 'infinitely many times'
  return `${ratio < 10 ? number(ratio, 2) : ratio < 1e6 ? count(Number(ratio.toPrecision(2))) : number(ratio)} times`
}

/** A number of any size in few digits: 12,345 · 12.3 · −0.082 · 1.2e−5. */
export function number(value: number, digits = 3): string {
  if (!Number.isFinite(value)) return value === -Infinity ? '−∞' : value === Infinity ? '∞' : '–'
  const size = Math.abs(value)
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(1).replaceAll('-', '−').replace('e+', 'e')
  const power = size ? Math.floor(Math.log10(size)) : 0
  const places = size >= 1000 ? 0 : Math.max(0, digits - 1 - (power < 0 ? power + 1 : power))
  return value.toLocaleString('en-US', { minimumFractionDigits: places, maximumFractionDigits: places }).replace('-', '−')
}

/** A whole number with its thousands apart. */
export function count(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}

/** A duration in hours, minutes and seconds. */
export function duration(seconds: number): string {
  const all = Math.round(seconds)
  const [h, m, s] = [Math.floor(all / 3600), Math.floor(all / 60) % 60, all % 60]
  const two = (n: number) => String(n).padStart(2, '0')
  return h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`
}
