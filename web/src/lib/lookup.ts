/** A dictionary that is asked softly: of every value as much as its key fits the query. */

export type Vector = ArrayLike<number>

export function dot(a: Vector, b: Vector): number {
  let found = 0
  for (let at = 0; at < a.length; at++) found += a[at]! * b[at]!
  return found
}

/** From −1 to 1; 0 where either has no direction. */
export function cosine(a: Vector, b: Vector): number {
  const size = Math.sqrt(dot(a, a) * dot(b, b))
  return size ? dot(a, b) / size : 0
}

/** `softmax(sharpness · fit)`; a key whose fit is not known gets nothing. */
export function shares(fits: readonly (number | null)[], sharpness: number): number[] {
  const known = fits.filter((fit) => fit !== null)
  const most = Math.max(...known)
  const powers = fits.map((fit) => (fit === null ? 0 : Math.exp(sharpness * (fit - most))))
  const sum = powers.reduce((a, b) => a + b, 0)
  return powers.map((power) => (sum ? power / sum : 0))
}

/** Values mixed by their shares, number by number. */
export function mixed(values: readonly Vector[], shares: readonly number[]): number[] {
  const found = new Array<number>(values[0]?.length ?? 0).fill(0)
  values.forEach((value, at) => found.forEach((_, n) => (found[n]! += shares[at]! * value[n]!)))
  return found
}

/** #rrggbb as three numbers from 0 to 255, and back. */
export function parts(colour: string): [number, number, number] {
  const at = Number.parseInt(colour.slice(1), 16)
  return [(at >> 16) & 255, (at >> 8) & 255, at & 255]
}
export function named(colour: Vector): string {
  return `#${Array.from(colour, (part) => Math.round(Math.min(255, Math.max(0, part))).toString(16).padStart(2, '0')).join('')}`
}

/** The slider from 0 to 1: all alike at its left end, then from 0.1 to 100, each step by as many times. */
export function sharpnessAt(place: number): number {
  return place <= 0 ? 0 : 10 ** (-1 + 3 * place)
}
export function placeOf(sharpness: number): number {
  return sharpness <= 0 ? 0 : (Math.log10(sharpness) + 1) / 3
}

/** What words a text is asked by and for: the longest are keys, in their order, and one more is the query. */
export function wordsOf(texts: readonly string[], count = 5): { keys: string[]; query: string } | null {
  const seen = new Set<string>()
  const words = texts.filter((text) => {
    const fits = /^\p{L}[\p{L}'’-]+$/u.test(text) && !seen.has(text.toLowerCase())
    seen.add(text.toLowerCase())
    return fits
  })
  if (words.length < 3) return null
  const longest = words.map((_, at) => at).sort((a, b) => [...words[b]!].length - [...words[a]!].length || a - b)
  const most = Math.min(count, words.length - 1)
  const keys = longest.slice(0, most).sort((a, b) => a - b)
  return { keys: keys.map((at) => words[at]!), query: words[longest[most]!]! }
}

/** Who gets how much, in words: “0.61 of the value of “king”, 0.28 of “woman” and 0.11 of the others”. */
export function told(names: readonly string[], shares: readonly number[], most = 3): string {
  const order = names.map((_, at) => at).sort((a, b) => shares[b]! - shares[a]! || a - b)
  const shown = order.slice(0, most).filter((at, place) => place === 0 || shares[at]! >= 0.01)
  const rest = order.slice(shown.length).reduce((sum, at) => sum + shares[at]!, 0)
  const said = shown.map((at, place) => `${shares[at]!.toFixed(2)} of ${place === 0 ? 'the value of ' : ''}${names[at]}`)
  if (rest >= 0.005) said.push(`${rest.toFixed(2)} of the ${order.length - shown.length === 1 ? 'other' : 'others'}`)
  return said.length < 2 ? said.join('') : `${said.slice(0, -1).join(', ')} and ${said.at(-1)}`
}

/** The one of some words that is nearest to a key. */
export function nearest(words: readonly string[], keys: readonly string[], vector: (word: string) => Vector | undefined): string | null {
  let found: { word: string; near: number } | null = null
  for (const word of words)
    for (const key of keys) {
      const [a, b] = [vector(word), vector(key)]
      const near = a && b ? cosine(a, b) : 0
      if (near > (found?.near ?? 0)) found = { word, near }
    }
  return found?.word ?? null
}
