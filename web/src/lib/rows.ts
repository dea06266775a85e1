/** Which rows of an embedding table a map shows: all, or those alone that begin a word, or those that training saw. */

/** What is kept of each piece: how often training saw it; nothing: that was not counted. */
export type Counts = ArrayLike<number>

export interface Wanted {
  /** Without pieces that go on with a word, signs and special tokens. */
  words: boolean
  /** Without rows that were never trained. */
  seen: boolean
}

/** Whether the pieces say where a word begins; without that, that cannot be told. */
export function tells(pieces: readonly string[]): boolean {
  return pieces.some((piece) => /^[▁Ġ]./u.test(piece))
}

const WORD = /^[▁Ġ][\p{L}\p{N}][\p{L}\p{M}\p{N}’'-]*$/u

/** The places of the rows that are wanted, in their order. */
export function rows(pieces: readonly string[], { words, seen }: Wanted, counts: Counts | null = null): number[] {
  return pieces.flatMap((piece, at) => (words && !WORD.test(piece)) || (seen && counts?.[at] === 0) ? [] : [at])
}

/** The same points of a plane, of these rows alone: x and y in turn. */
export function places(place: ArrayLike<number>, kept: readonly number[]): Float64Array {
  return Float64Array.from({ length: kept.length * 2 }, (_, at) => place[kept[at >> 1]! * 2 + (at & 1)]!)
}
