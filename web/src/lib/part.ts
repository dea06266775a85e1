/** Which part is seen of a text that is longer than a model reads. */

import { count } from './numbers'
import type { Window } from './types'

/** The numbers of its tokens among all: "tokens 65–128 of 284". */
export function tokens({ first, last, total }: Pick<Window, 'first' | 'last' | 'total'>): string {
  return `tokens ${count(first)}–${count(last)} of ${count(total)}`
}

/** In a few words: "part 2 of 5 of the text, tokens 65–128 of 284". */
export function seen(part: Window): string {
  return `part ${count(part.number)} of ${count(part.count)} of the text, ${tokens(part)}`
}
