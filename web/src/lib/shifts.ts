/** What of an output becomes less or more probable by a change: the same output, before and after. */

import { before as standing, behind, clean, named } from './pieces'
import { hidden } from './steps'
import type { LookValues } from './types'

export interface Shift {
  name: string
  before: number
  /** null: less than `least`. */
  after: number | null
  least: number
  /** What would come in its place now, and how probable that is. */
  instead: { name: string; probability: number } | null
}

/** Less than that is no change that can be seen. */
const SEEN = 0.005

const by = ({ before, after }: Shift) => Math.abs(before - (after ?? 0))

/**
 * Those that changed most, the most changed first; before them what is `kept`, however little that changed. Of the first
 * `given` tokens nothing else is told: they were read, and not written.
 */
export function shifts(before: LookValues, after: LookValues, kept: readonly number[] = [], given = 0, most = 4): Shift[] {
  const all = every(before, after)
  if (before.output.kind === 'classes') kept = [0]
  const first = all.filter(({ place }) => kept.includes(place))
  const rest = all.filter(({ place, shift }) => (!given || place >= given) && !kept.includes(place) && by(shift) >= SEEN).sort((a, b) => by(b.shift) - by(a.shift))
  return [...first, ...rest].slice(0, Math.max(most, first.length)).map(({ shift }) => shift)
}

interface Placed {
  place: number
  shift: Shift
}

function every(before: LookValues, after: LookValues): Placed[] {
  const [was, is] = [before.output, after.output]
  if (was.kind === 'classes' && is.kind === 'classes') {
    const now = new Map(is.classes)
    return was.classes.map(([name, share], place) => ({ place, shift: { name, before: share, after: now.get(name) ?? null, least: 0, instead: null } }))
  }
  if (was.kind === 'tags' && is.kind === 'tags')
    return was.tags.map(({ text, tag, probability, end }, at) => {
      const [now, place, name] = [is.tags[at]!, tokenAt(before, end), `${text} ${tag}`]
      if (now.tag === tag) return { place, shift: { name, before: probability, after: now.probability, least: 0, instead: null } }
      const instead = { name: now.tag, probability: now.probability }
      return { place, shift: { name, before: probability, after: null, least: 1 - now.probability, instead } }
    })
  if (was.kind === 'words' && is.kind === 'words') {
    const places = before.source.flatMap(({ text }, place) => (hidden(text) ? [place] : []))
    return was.gaps.map((gap, at) => {
      const [[name, share], now] = [gap[0]!, is.gaps[at]!]
      const found = now.find(([piece]) => piece === name)
      const other = now[0]![0] === name ? null : { name: clean(now[0]![0]), probability: now[0]![1] }
      return { place: places[at]!, shift: { name: clean(name), before: share, after: found?.[1] ?? null, least: now.at(-1)![1], instead: other } }
    })
  }
  return pieces(before, after)
}

/** Pieces one after another, each with what was probable before it was known. */
function pieces(before: LookValues, after: LookValues): Placed[] {
  const back = before.output.kind === 'continuation' ? 1 : 0
  return before.written.flatMap(({ text }, place) => {
    const [was, is] = [before.probability?.[place], after.probability?.[place]]
    if (was == null || is == null) return []
    const best = after.said?.[place - back]?.[0]
    const instead = best && best.piece !== text ? { name: behind(standing(before.written, place), best.piece), probability: best.probability } : null
    return [{ place, shift: { name: named(before.written, place), before: was, after: is, least: 0, instead } }]
  })
}

/** The token that ends where a word does. */
function tokenAt({ source }: LookValues, end: number): number {
  return source.findIndex((token) => !token.special && token.end === end)
}

export interface Rival {
  name: string
  probability: number
  other: string
  less: number
}

/** What came at a place, and the most probable of what did not; null where nothing was decided there. */
export function rival(values: LookValues, place: number): Rival | null {
  const back = values.output.kind === 'continuation' ? 1 : 0
  const probability = values.probability?.[place]
  const text = values.written[place]?.text
  const other = values.said?.[place - back]?.find(({ piece }) => piece !== text)
  if (probability == null || !other) return null
  return { name: named(values.written, place), probability, other: behind(standing(values.written, place), other.piece), less: other.probability }
}
