/** Numbers as people read them. */

/** A weight or probability: 0.83; small ones keep a digit that says something. */
export function weight(value: number): string {
  if (value > 0 && value < 0.005) return value < 0.0005 ? '< 0.001' : value.toFixed(3)
  return value.toFixed(2)
}

/** A share in hundredths, with so many digits more; never all or nothing where it is not. */
export function percent(value: number, more = 0): string {
  const hundred = value * 100
  const [text, least] = [hundred.toFixed(more), 10 ** -more]
  if (hundred > 0 && Number(text) === 0) return `< ${least.toFixed(more)} %`
  if (hundred < 100 && Number(text) === 100) return `> ${(100 - least).toFixed(more)} %`
  return `${text} %`
}

/** So many digits more are shown at most to tell two numbers apart. */
const FINEST = 4

/** Two numbers beside one another, as short as both can be without looking the same; what differs in less looks the same. */
export function apart<T>(one: T, other: T, shown: (value: T, more: number) => string): [string, string] {
  for (let more = 0; more <= FINEST; more++) {
    const [a, b] = [shown(one, more), shown(other, more)]
    if (a !== b) return [a, b]
  }
  return [shown(one, 0), shown(other, 0)]
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
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(Math.max(1, digits - 2)).replaceAll('-', '−').replace('e+', 'e')
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
