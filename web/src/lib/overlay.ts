/** Several heads over one another on the same tokens, each in a colour and a dash of its own. */

import type { Theme } from './ink'
import type { Picture } from './look'
import type { Kind } from './types'

/** A head by its use of attention, its layer and its number, both counted from 1. */
export interface Picked {
  kind: Kind
  layer: number
  head: number
}

/** Colours that those who see colours otherwise tell apart too, after Okabe and Ito, as dark or light as the page asks. */
const COLOURS: Record<Theme, readonly string[]> = {
  light: ['#0072b2', '#c24e00', '#00795a', '#a63d82', '#7d6500', '#3c3c40'],
  dark: ['#56b4e9', '#ff8f45', '#33cfa2', '#e79cc9', '#f0dc5a', '#d6d5d0'],
}
/** Dashes, so that colour is not all there is. */
const DASHES: readonly (readonly number[])[] = [[], [9, 4], [2, 4], [12, 3, 2, 3], [5, 5], [1, 7]]
/** More than these cannot be told apart. */
export const MOST = DASHES.length
/** Below this a line would hardly be seen; of each row so many are drawn while none is pointed at. */
const FAINT = 0.02
const STRONG = 0.15

export function ofHead(theme: Theme, at: number): { colour: string; dash: readonly number[] } {
  return { colour: COLOURS[theme][at % MOST]!, dash: DASHES[at % MOST]! }
}

/** With one more, or without it where it was there; heads of another use of attention see other tokens, so those go. */
export function toggled(picked: readonly Picked[], one: Picked): Picked[] {
  const same = (other: Picked) => other.layer === one.layer && other.head === one.head
  const kept = picked.filter(({ kind }) => kind === one.kind)
  if (kept.some(same)) return kept.filter((other) => !same(other))
  return kept.length < MOST ? [...kept, one] : kept
}

export interface Line {
  row: number
  column: number
  weight: number
  /** Which of the heads. */
  head: number
}

/** What is drawn, the weakest first: of one row all that is seen, without one only what is strong. */
export function lines(pictures: readonly Picture[], row: number | null): Line[] {
  const found: Line[] = []
  pictures.forEach(({ rows, columns, data }, head) => {
    for (let at = 0; at < rows.length; at++) {
      if (row !== null && at !== row) continue
      for (let column = 0; column < columns.length; column++) {
        const weight = data[at * columns.length + column]!
        if (weight > (row === null ? STRONG : FAINT)) found.push({ row: at, column, weight, head })
      }
    }
  })
  return found.sort((a, b) => a.weight - b.weight)
}
