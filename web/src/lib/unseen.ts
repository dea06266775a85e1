/** Words that training never saw, in the text they stand in. */

export type Unseen = [word: string, begin: number, end: number]

/** A text in parts: what training never saw, and what stands between. Places count code points, as the server does. */
export function marked(text: string, unseen: readonly Unseen[]): { text: string; never: boolean }[] {
  const letters = Array.from(text)
  const parts: { text: string; never: boolean }[] = []
  let last = 0
  for (const [, begin, end] of unseen) {
    if (begin > last) parts.push({ text: letters.slice(last, begin).join(''), never: false })
    parts.push({ text: letters.slice(begin, end).join(''), never: true })
    last = end
  }
  if (last < letters.length) parts.push({ text: letters.slice(last).join(''), never: false })
  return parts
}

/** Sentences that a demonstration learned come out with more, in the geometric mean over their tokens. */
const KNOWN = 0.75

export function unsure(probabilities: readonly (number | null)[]): boolean {
  const logs = probabilities.map((one) => Math.log(one ?? 1))
  return logs.reduce((sum, one) => sum + one, 0) < logs.length * Math.log(KNOWN)
}
