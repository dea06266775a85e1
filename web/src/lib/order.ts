/** A sentence with its words in another order. */

/** Numbers from 0 to 1, always the same for one seed. */
export function chance(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const END = /(?<=[^\s.!?…。])[.!?…。]+$/

/**
 * The words shuffled; the mark at the end stays there, and so does the first word, before which no space stands: so
 * all words keep their pieces. Of a text without spaces the characters are shuffled. Null where there is one order only.
 */
export function shuffled(text: string, seed: number): string | null {
  const trimmed = text.trim()
  const end = END.exec(trimmed)?.[0] ?? ''
  const body = trimmed.slice(0, trimmed.length - end.length)
  const spaced = /\s/.test(body)
  const whole = spaced ? body.split(/\s+/) : [...body]
  const first = new Set(whole.slice(1)).size > 1 ? whole.slice(0, 1) : []
  const words = whole.slice(first.length)
  if (new Set(words).size < 2) return null
  const random = chance(seed)
  for (;;) {
    const found = [...words]
    for (let last = found.length - 1; last > 0; last--) {
      const at = Math.floor(random() * (last + 1))
      ;[found[last], found[at]] = [found[at]!, found[last]!]
    }
    if (found.some((word, at) => word !== words[at])) return [...first, ...found].join(spaced ? ' ' : '') + end
  }
}

/** Whether two lists hold the same things, in whatever order. */
export function sameBag(one: readonly string[], other: readonly string[]): boolean {
  if (one.length !== other.length) return false
  const [a, b] = [[...one].sort(), [...other].sort()]
  return a.every((text, at) => text === b[at])
}
