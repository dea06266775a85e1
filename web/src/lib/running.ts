/** Labels as running text: in words, which a line does not tear. */

import type { Label } from './look'
import { apart, clean } from './pieces'

export interface Word {
  /** Whether a space stands before it. */
  space: boolean
  /** Its labels, and what each says of it. */
  parts: { at: number; text: string }[]
}

/** A piece that is a space and nothing else: of a text whose pieces are characters. */
const BLANK = /^[\s▁Ġ]+$/

/** The words of a text, with the marks behind them; a space that is a label of its own is a word of its own. */
export function running(labels: readonly Label[], whole: boolean): Word[] {
  const found: Word[] = []
  let blank = false
  labels.forEach((label, at) => {
    const before = blank
    blank = !whole && !label.special && BLANK.test(label.text)
    const space = !blank && apart(labels, at, whole)
    const begins = !found.length || space || blank || before
    const said = whole ? label.name : clean(label.text)
    // where a text is cut otherwise, a piece that goes on with a word may say so itself
    const text = blank ? ' ' : begins ? said : said.replace(/^##(?=.)/, '')
    if (begins) found.push({ space, parts: [{ at, text }] })
    else found.at(-1)!.parts.push({ at, text })
  })
  return found
}
