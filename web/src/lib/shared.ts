/** What two texts have in common, so that two heads can be compared where the texts are not the same. */

import type { Label, Picture } from './look'

/** Places in both of the longest sequence of labels that stand in both, in their order (longest common subsequence). */
export function shared(first: readonly Pick<Label, 'text'>[], second: readonly Pick<Label, 'text'>[]): [number, number][] {
  const [high, wide] = [first.length, second.length]
  const lengths = Array.from({ length: high + 1 }, () => new Uint32Array(wide + 1))
  const alike = (i: number, j: number) => first[i]!.text === second[j]!.text
  for (let i = high - 1; i >= 0; i--)
    for (let j = wide - 1; j >= 0; j--) lengths[i]![j] = alike(i, j) ? lengths[i + 1]![j + 1]! + 1 : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!)
  const found: [number, number][] = []
  for (let i = 0, j = 0; i < high && j < wide; ) {
    if (alike(i, j)) found.push([i++, j++])
    else if (lengths[i + 1]![j]! >= lengths[i]![j + 1]!) i++
    else j++
  }
  return found
}

/** The same, and the words in between that stand for each other: where both texts have one between two that they share. */
export function matched(first: readonly Pick<Label, 'text'>[], second: readonly Pick<Label, 'text'>[]): [number, number][] {
  const found: [number, number][] = []
  let [i, j] = [0, 0]
  for (const [at, there] of [...shared(first, second), [first.length, second.length] as [number, number]]) {
    if (at - i === 1 && there - j === 1) found.push([i, j])
    if (at < first.length) found.push([at, there])
    ;[i, j] = [at + 1, there + 1]
  }
  return found
}

/** The names of those of the first, and of the second, that are compared with nothing. */
export function unmatched(first: readonly Label[], second: readonly Label[]): [string[], string[]] {
  const pairs = matched(first, second)
  const left = (labels: readonly Label[], side: 0 | 1) => labels.filter(({ special }, at) => !special && !pairs.some((pair) => pair[side] === at)).map(({ name }) => name)
  return [left(first, 0), left(second, 1)]
}

/** The words of two texts, each with whether the other lacks it there. */
export function differing(first: readonly string[], second: readonly string[]): { text: string; other: boolean }[][] {
  const labels = (texts: readonly string[]) => texts.map((text) => ({ text }))
  const pairs = shared(labels(first), labels(second))
  return [first, second].map((texts, side) => texts.map((text, at) => ({ text, other: !pairs.some((pair) => pair[side] === at) })))
}

/** Some rows and columns of a picture; its rows no longer sum to one. */
export function part({ rows, columns, data }: Picture, keptRows: readonly number[], keptColumns: readonly number[]): Picture {
  return {
    rows: keptRows.map((row) => rows[row]!),
    columns: keptColumns.map((column) => columns[column]!),
    data: Float32Array.from({ length: keptRows.length * keptColumns.length }, (_, at) => {
      const row = keptRows[Math.floor(at / keptColumns.length)]!
      return data[row * columns.length + keptColumns[at % keptColumns.length]!]!
    }),
  }
}

/**
 * Both pictures where they have the same rows and columns or one in place of another, and the rows of the first that were
 * kept; null: they share no word. The first names both words where they differ.
 */
export function common(first: Picture, second: Picture): { pictures: [Picture, Picture]; rows: number[] } | null {
  const rows = matched(first.rows, second.rows)
  const columns = matched(first.columns, second.columns)
  const alike = (pairs: [number, number][], one: readonly Label[], other: readonly Label[]) => pairs.filter(([at, there]) => one[at]!.text === other[there]!.text)
  const says = (pairs: [number, number][], labels: readonly Label[]) => pairs.some(([at]) => !labels[at]!.special && /[\p{L}\p{N}]/u.test(labels[at]!.text))
  if (!says(alike(rows, first.rows, second.rows), first.rows) || !says(alike(columns, first.columns, second.columns), first.columns)) return null
  const of = (side: 0 | 1) => [rows.map((pair) => pair[side]), columns.map((pair) => pair[side])] as const
  const named = (pairs: [number, number][], one: readonly Label[], other: readonly Label[]) =>
    pairs.map(([at, there]) => (one[at]!.text === other[there]!.text ? one[at]! : { ...one[at]!, name: `${one[at]!.name} / ${other[there]!.name}` }))
  const both: [Picture, Picture] = [part(first, ...of(0)), part(second, ...of(1))]
  return { pictures: [{ ...both[0], rows: named(rows, first.rows, second.rows), columns: named(columns, first.columns, second.columns) }, both[1]], rows: of(0)[0] }
}

/** Of what the rows of a picture give, the share that stays within it: the mean of their sums. */
export function within({ rows, columns, data }: Picture): number {
  return rows.length && columns.length ? data.reduce((sum, one) => sum + one, 0) / rows.length : 0
}
