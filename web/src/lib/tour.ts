/** The short tour on first opening: what it says, and whether it was seen. */

export const STEPS = [
  ['A text and its output', 'Type above, or take an example. The model answers as you type, and all that is shown below is of this text.'],
  ['One head', 'A head looks from each token at others, with weights that sum to one. Point at or tap a token to see where it looks; click to keep it.'],
  ['Other heads', 'Each small picture is a head; click one to see it large. “Every head” shows all of them on one sheet.'],
  ['Where it looked is not why', 'Attention says where a head looked, not what the output rests on. Switch a head off, or ask what a kept word needs, to measure that.'],
] as const

const STORED = 'regard.tour'

/** Whether a reader opens the page for the first time, and asked for nothing in particular. */
export function first(hash: string, kept: unknown, storage: () => Pick<Storage, 'getItem'>): boolean {
  if (hash.length > 1 || kept) return false
  try {
    return storage().getItem(STORED) === null
  } catch {
    return false // it could not be remembered, and would come again and again
  }
}

export function remember(storage: () => Pick<Storage, 'setItem'>): void {
  try {
    storage().setItem(STORED, 'seen')
  } catch {
    // as long as the page is open
  }
}
