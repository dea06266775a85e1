/** Which rows of an embedding table a map shows: all, or those alone that begin a word. */

/** Whether the pieces say where a word begins; without that, that cannot be told. */
export function tells(pieces: readonly string[]): boolean {
  return pieces.some((piece) => /^[▁Ġ]./u.test(piece))
}

const WORD = /^[▁Ġ][\p{L}\p{N}][\p{L}\p{M}\p{N}’'-]*$/u

/** The places of the rows, in their order; of words alone without pieces that go on with a word, signs and symbols. */
export function rows(pieces: readonly string[], words: boolean): number[] {
  return pieces.flatMap((piece, at) => (words && !WORD.test(piece) ? [] : [at]))
}

/** The same points of a plane, of these rows alone: x and y in turn. */
export function places(place: ArrayLike<number>, kept: readonly number[]): Float64Array {
  return Float64Array.from({ length: kept.length * 2 }, (_, at) => place[kept[at >> 1]! * 2 + (at & 1)]!)
}
