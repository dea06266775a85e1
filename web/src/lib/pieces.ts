/** Pieces of words as people read them. */

import type { Token } from './types'

/** A piece without the sign of the space before it. */
export function clean(text: string): string {
  const found = text.replace(/[▁Ġ]/g, ' ').trim()
  return found || '␣'
}

const LETTER = '[\\p{L}\\p{N}]'
const BEGINS = new RegExp(`^${LETTER}`, 'u')
const ENDS = new RegExp(`${LETTER}$`, 'u')

/** A piece behind another one, null: behind none. A dot stands before what goes on with a word. */
export function behind(before: string | null, text: string): string {
  return before !== null && ENDS.test(before) && BEGINS.test(text) ? `·${clean(text)}` : clean(text)
}

const PATCH = /^(\d+),(\d+)$/

/** A token where it stands, likewise; the patches of an image are no parts of a word. */
export function named(tokens: readonly Token[], place: number): string {
  const [token, before] = [tokens[place]!, tokens[place - 1]]
  const joined = before && !before.special && !token.special && token.start === before.end && !PATCH.test(token.text)
  return behind(joined ? before.text : null, token.text)
}

/** What candidates for a place stand behind: the piece before it, if that is one of a word. */
export function before(tokens: readonly Token[], place: number): string | null {
  const found = tokens[place - 1]
  return found && !found.special ? found.text : null
}

const CLOSES = /^[.,;:!?…。、，)\]}»”’%]/u
const OPENS = /^[([{«“‘¿¡]$/u

/** Whether a space stands before one of some labels in running text: pieces say it themselves or leave it out, of words it follows. */
export function apart(labels: readonly { text: string; special: boolean; space?: boolean }[], at: number, whole: boolean): boolean {
  const [{ text, special, space }, before] = [labels[at]!, labels[at - 1]]
  if (!before) return false
  if (special || before.special) return true
  return whole ? !CLOSES.test(text) && !OPENS.test(before.text) : space === true || /^[\s▁Ġ]/.test(text)
}

/** Pieces of a table, which stand behind nothing: one without the sign of a space goes on with a word, or begins a sentence. */
export function unplaced(pieces: readonly string[]): (text: string) => string {
  const signs = pieces.some((text) => /^[▁Ġ]./u.test(text))
  return (text) => (signs && /^[\p{Ll}\p{N}]/u.test(text) ? `·${clean(text)}` : clean(text))
}

/** The class token or a patch of an image, in words. */
export function spot(text: string): string {
  const [, row, column] = PATCH.exec(text) ?? []
  if (row) return `the patch in row ${row}, column ${column}`
  return text === 'class' ? 'the class token' : text
}
