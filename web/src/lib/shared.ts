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

/** Both pictures where they have the same rows and columns, and the rows of the first that were kept; null: nowhere. */
export function common(first: Picture, second: Picture): { pictures: [Picture, Picture]; rows: number[] } | null {
  const rows = shared(first.rows, second.rows)
  const columns = shared(first.columns, second.columns)
  const says = (pairs: [number, number][], labels: readonly Label[]) => pairs.some(([at]) => !labels[at]!.special && /[\p{L}\p{N}]/u.test(labels[at]!.text))
  if (!says(rows, first.rows) || !says(columns, first.columns)) return null
  const of = (side: 0 | 1) => [rows.map((pair) => pair[side]), columns.map((pair) => pair[side])] as const
  return { pictures: [part(first, ...of(0)), part(second, ...of(1))], rows: of(0)[0] }
}

/** Of what the rows of a picture give, the share that stays within it: the mean of their sums. */
export function within({ rows, columns, data }: Picture): number {
  return rows.length && columns.length ? data.reduce((sum, one) => sum + one, 0) / rows.length : 0
}
