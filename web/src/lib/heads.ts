/** What each head does over many texts or images: shares of attention with intervals, asked piece by piece. */

import { ask } from './api'
import type { Asked, Kind } from './types'

export interface Column {
  name: string
  title: string
  /** Which keys these are. */
  note: string
  /** Of what is no share of attention. */
  unit: string | null
  /** What it would be if every visible key were given the same. */
  chance: number
  queries: number
  texts: number
}

export interface OfKind {
  layers: number
  heads: number
  columns: Column[]
  functions: (string | null)[][]
  rare: string[][][]
  labels: string[][]
}

interface Values {
  origin: 'demo' | 'validation' | 'examples' | 'digits' | 'file'
  of: 'texts' | 'images'
  done: number
  total: number
  cut: number
  confidence: number
  excess: number
  kinds: Partial<Record<Kind, OfKind>>
}

export interface ManyTexts extends Values {
  arrays: Record<string, { data: ArrayLike<number> }>
}

export interface Cell {
  mean: number
  low: number
  high: number
  /** Whether this names the head, or holds where there is such a key. */
  sure: boolean
}

/** Ask until every text or image was read; what is known so far is told as it comes. */
export async function manyTexts(asked: Asked, told: (found: ManyTexts) => void, signal: AbortSignal): Promise<void> {
  const { model, snapshot, changes } = asked
  for (let done = -1; ; ) {
    const { values, arrays } = await ask<Values>('heads', { model, snapshot, changes }, signal)
    told({ ...values, arrays })
    if (values.done >= values.total || values.done === done) return
    done = values.done
  }
}

/** The columns that are shares and may name a head; the ranges of distance are not. */
export function shown({ columns }: OfKind): number[] {
  return columns.flatMap(({ name }, at) => (name.startsWith('distance_') ? [] : [at]))
}

/** Of layer and head, counted from 1. */
export function cell(found: ManyTexts, kind: Kind, layer: number, head: number, column: number): Cell {
  const of = found.kinds[kind]!
  const at = ((layer - 1) * of.heads + head - 1) * of.columns.length + column
  const value = (name: string) => found.arrays[`${name}.${kind}`]!.data[at]!
  const { name } = of.columns[column]!
  const sure = of.functions[layer - 1]![head - 1] === name || of.rare[layer - 1]![head - 1]!.includes(name)
  return { mean: value('mean'), low: value('low'), high: value('high'), sure }
}

/** How strong the ink is: what is above chance, of what could be. */
export function strength({ unit, chance }: Column, { mean }: Cell): number {
  return unit || !(mean > chance) ? 0 : (mean - chance) / (1 - chance)
}

export function amount({ unit }: Column, value: number, spelled = false): string {
  if (Number.isNaN(value)) return '–'
  if (unit) return value.toFixed(1) + (spelled ? ` ${unit}` : '')
  return Math.round(100 * value) + (spelled ? ' %' : '')
}

/** One cell in a sentence. */
export function told(column: Column, cell: Cell, of: Values['of']): string {
  const { note, title, queries, texts } = column
  const range = `${amount(column, cell.low)} to ${amount(column, cell.high, true)}`
  const over = `${queries.toLocaleString('en')} ${queries === 1 ? 'query' : 'queries'} in ${texts.toLocaleString('en')} ${of}`
  return `${title}${note ? ` (${note})` : ''}: ${amount(column, cell.mean, true)}, 95 % interval ${range}; chance ${amount(column, column.chance, true)}; ${over}.`
}

/** All intervals of one head, for where nothing is pointed at. */
export function intervals(found: ManyTexts, kind: Kind, layer: number, head: number): string {
  const of = found.kinds[kind]!
  const parts = shown(of).map((place) => {
    const [column, one] = [of.columns[place]!, cell(found, kind, layer, head, place)]
    return `${column.title} ${amount(column, one.mean, true)} (${amount(column, one.low)} to ${amount(column, one.high, true)})`
  })
  return `mean and 95 % interval: ${parts.join('; ')}.`
}

const ORIGINS: Record<Values['origin'], string> = {
  demo: 'validation sentences of the demonstration, with the translations that they have',
  validation: 'texts of the validation set',
  examples: 'examples, for there is no validation set beside the model',
  digits: 'test images of the demonstration',
  file: 'images of the file, its first',
}

export function whose({ origin, total }: Pick<Values, 'origin' | 'total'>): string {
  return `${total.toLocaleString('en')} ${ORIGINS[origin]}`
}
