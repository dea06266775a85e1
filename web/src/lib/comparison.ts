/** What two panes may differ in. */

import { changed } from './link'
import type { Pane } from './pane.svelte'
import { matched } from './shared'
import type { Model } from './types'

export type Comparison = 'sentences' | 'checkpoints' | 'models' | 'changes'

type Given = Pick<Pane, 'text' | 'snapshot' | 'changes'> & { model: Pick<Model, 'number'> }

/** What they differ in, the largest first. */
export function comparison(first: Given, second: Given): Comparison {
  if (first.model.number !== second.model.number) return 'models'
  if (first.snapshot !== second.snapshot) return 'checkpoints'
  if (first.text === second.text && (changed(first.changes) || changed(second.changes))) return 'changes'
  return 'sentences'
}

/** Models that can stand beside one: with attention, and of the same sort of input. */
export function beside(model: Model, models: readonly Model[]): Model[] {
  const image = (one: Model) => one.reads === 'image'
  return models.filter((one) => one.number !== model.number && one.ready && Object.keys(one.kinds).length > 0 && image(one) === image(model))
}

/**
 * The row of a kept word when a text is another: the same word where what stands before it or behind it is as it was; between
 * those the same word, as often said before. Null: it is gone.
 */
export function followed(row: number, before: readonly string[], after: readonly string[]): number | null {
  const most = Math.min(before.length, after.length)
  let begin = 0
  while (begin < most && before[begin] === after[begin]) begin++
  let end = 0
  while (end < most - begin && before[before.length - 1 - end] === after[after.length - 1 - end]) end++
  if (row < begin) return row
  const later = before.length - end
  if (row >= later) return row < before.length ? row + after.length - before.length : null
  const nth = before.slice(begin, row).filter((one) => one === before[row]).length
  return after.slice(begin, after.length - end).flatMap((one, at) => (one === before[row] ? [begin + at] : []))[nth] ?? null
}

/**
 * The row of a second picture that is the same word as one of the first: at the same place, or as often said before; else what
 * stands in its place: where both have as many, or one between two words that they share. Null: there is none.
 */
export function carried(row: number | null, first: readonly string[], second: readonly string[]): number | null {
  const text = row === null ? undefined : first[row]
  if (row === null || text === undefined) return null
  if (second[row] === text) return row
  const nth = first.slice(0, row).filter((one) => one === text).length
  const there = second.flatMap((one, at) => (one === text ? [at] : []))
  const labels = (texts: readonly string[]) => texts.map((text) => ({ text }))
  return there[nth] ?? there.at(-1) ?? (first.length === second.length ? row : (matched(labels(first), labels(second)).find(([at]) => at === row)?.[1] ?? null))
}
