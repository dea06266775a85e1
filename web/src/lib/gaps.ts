/** A text with gaps, and what a model wrote for each of them, put where it belongs. */

export interface Written {
  piece: string
  /** null: it is not known. */
  probability: number | null
}

export interface Part extends Written {
  /** Of the text, of what fills a gap, or a gap for which nothing was written. */
  kind: 'read' | 'filled' | 'empty'
}

const NAME = '<extra_(?:id_)?\\d+>'
const SENTINEL = new RegExp(`^${NAME}$`)
const GAP = new RegExp(`(\\[MASK\\]|${NAME})`)
const END = /^<\/?s>$/

const number = (name: string) => Number(/\d+/.exec(name)![0])

/**
 * The text with its gaps filled. A gap is filled by what was written behind its name; `[MASK]` is the next that the text does
 * not name. The space before a gap belongs to it, as it belongs to the first piece of a word; letters have their spaces apart.
 */
export function filled(text: string, written: readonly Written[]): Part[] {
  const parts = text.split(GAP)
  const taken = new Set(parts.filter((part) => SENTINEL.test(part)).map(number))
  const said = new Map<number, Written[]>()
  let now: Written[] | undefined
  for (const one of written) {
    if (SENTINEL.test(one.piece)) said.set(number(one.piece), (now = []))
    else if (!END.test(one.piece)) now?.push(one)
  }
  const pieces = [...said.values()].flat()
  const letters = pieces.length > 1 && pieces.every(({ piece }) => [...piece].length <= 1)
  let free = 0
  const found: Part[] = []
  parts.forEach((part, at) => {
    if (at % 2 === 0) {
      const before = at < parts.length - 1 && !letters ? part.replace(/ $/, '') : part
      if (before) found.push({ piece: before, probability: null, kind: 'read' })
      return
    }
    if (part === '[MASK]') while (taken.has(free)) free++
    const fills = said.get(part === '[MASK]' ? free++ : number(part)) ?? []
    if (fills.length) found.push(...fills.map((one) => ({ ...one, piece: one.piece.replace(/[▁Ġ]/g, ' '), kind: 'filled' as const })))
    else found.push({ piece: letters || !at || !parts[at - 1] ? '…' : ' …', probability: null, kind: 'empty' })
  })
  return found
}

/** The same of what was written as one text. */
export function filledBy(text: string, said: string): string {
  const pieces = said.split(new RegExp(` ?(${NAME})`)).filter((piece) => piece)
  return filled(text, pieces.map((piece) => ({ piece, probability: null }))).map(({ piece }) => piece).join('')
}
