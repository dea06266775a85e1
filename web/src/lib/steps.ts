/** A pass as the steps of writing it: at each, what might have come, what did, and who looked. */

import { number, percent, times } from './numbers'
import { before } from './pieces'
import type { ending } from './continued'
import type { LookValues, Model, Said } from './types'

/** The mark at which a language model stopped by itself. */
export type Ending = ReturnType<typeof ending>

export interface Candidate {
  /** Its number, where it is told: of the most probable. */
  id?: number
  piece: string
  probability: number
  /** It is what was written, or stands there. */
  taken: boolean
}

export interface Step {
  /** Of the token among those that are written, or read where words are hidden. */
  place: number
  /** Of the weights: who looked. */
  row: number
  /** null: nothing is written there yet, or it is hidden. */
  taken: string | null
  /** Of what was taken. */
  probability: number | null
  candidates: Candidate[]
  /** The piece that they would stand behind. */
  before: string | null
  /** What all that is not among the candidates has together. */
  rest: number
}

const HIDDEN = /^[[<]mask[\]>]$/i

export function hidden(piece: string): boolean {
  return HIDDEN.test(piece)
}

/**
 * The steps of a pass. A decoder says at each place what is written there; a language model says at each place what comes
 * behind it, and first of all nothing, and may have stopped there (`end`); a model of masked words says what may stand
 * where it looks.
 */
export function steps(values: LookValues, writes: Model['writes'], end: Ending = null): Step[] {
  const { said, written, probability } = values
  if (!said) return []
  if (writes === 'continuation')
    return said.map((some, row) => {
      const stopped = row === written.length - 1 ? end : null
      return step(some, before(written, row + 1), row + 1, row, written[row + 1]?.text ?? stopped?.piece ?? null, probability?.[row + 1] ?? stopped?.probability ?? null)
    })
  return said.map((some, row) => {
    const text = written[row]?.text ?? null
    return step(some, before(written, row), row, row, text !== null && hidden(text) ? null : text, probability?.[row] ?? null)
  })
}

function step(some: readonly Said[], before: string | null, place: number, row: number, taken: string | null, probability: number | null): Step {
  const like = some.filter(({ piece }) => piece === taken)
  // two pieces may be written alike; the one that was taken has the probability that was told
  const far = ({ probability: other }: Said) => Math.abs(other - (probability ?? other))
  const found = like.sort((a, b) => far(a) - far(b))[0]
  const candidates: Candidate[] = some.map((one) => ({ id: one.id, piece: one.piece, probability: one.probability, taken: one === found }))
  if (!found && taken !== null && probability !== null) candidates.push({ piece: taken, probability, taken: true })
  const rest = Math.max(0, 1 - candidates.reduce((sum, one) => sum + one.probability, 0))
  return { place, row, taken, probability: found?.probability ?? probability, candidates, before, rest }
}

/** Where to begin: at the place that is kept, if a step is made there; else behind what was given, or at the first gap. */
export function begin(values: LookValues, writes: Model['writes'], kept: number | null = null): number {
  if (kept !== null && kept < (values.said?.length ?? 0)) return kept
  if (writes === 'continuation') return Math.max(0, values.source.length - 1)
  if (writes === 'words') return Math.max(0, values.source.findIndex(({ text }) => hidden(text)))
  return 0
}

/** A probability that may be tiny: 63 % · 0.032 % · 1.2e−7; with so many digits more. */
export function chance(probability: number, more = 0): string {
  if (probability >= 0.005) return percent(probability, more)
  if (probability >= 1e-5) return `${Number((probability * 100).toPrecision(2 + more))} %`
  return number(probability, 3 + more)
}

/** Below that two probabilities count as the same. */
const ALIKE = 1.05

/** A probability beside another: "300 times less". */
export function against(probability: number, other: number): string {
  const [larger, smaller] = [Math.max(probability, other), Math.min(probability, other)]
  if (larger < ALIKE * smaller) return 'as much'
  return `${times(larger, smaller)} ${probability < other ? 'less' : 'more'}`
}

/** What candidates are measured by: the one that was taken, or else the most probable. */
export function measure(candidates: readonly Candidate[]): Candidate | null {
  const [first] = [...candidates].sort((a, b) => b.probability - a.probability)
  return candidates.find(({ taken }) => taken) ?? first ?? null
}
