/** What a model made of a text, in one line, to be set beside what it made of another. */

import type { Look } from './look'
import { before, behind } from './pieces'
import { percent } from './numbers'
import { hidden } from './steps'
import type { Output, WrittenToken } from './types'

export interface Outcome {
  text: string
  /** A few numbers behind it. */
  more: string
  /** What the model itself says, without what it read. */
  said: string
  /** The same for two outputs that say the same, in whatever order they say it. */
  bag: string
}

const SHOWN = 3

/** Of a language model with what it went on with, or else with the piece that is most probable to come next. */
export function outcome(look: Look, gone: readonly WrittenToken[] | null = null): Outcome {
  const output: Output = look.values.output
  if (output.kind === 'text') return { text: output.text, more: '', said: output.text, bag: output.text }
  if (output.kind === 'classes') {
    const said = Array.isArray(output.said) ? output.said.join(', ') || 'none of the labels' : String(output.said)
    const shares = output.classes.slice(0, SHOWN).map(([label, share]) => `${label} ${percent(share)}`)
    return { text: said, more: shares.join(' · '), said, bag: [said, ...shares].join('\n') }
  }
  if (output.kind === 'tags') {
    const tagged = output.tags.filter(({ tag }) => tag !== 'O').map(({ text, tag }) => `${text} ${tag}`)
    const all = output.tags.map(({ text, tag }) => `${text} ${tag}`).sort()
    return { text: tagged.join(' · ') || 'no tags', more: '', said: all.join('\n'), bag: all.join('\n') }
  }
  if (output.kind === 'words') {
    const places = look.values.source.flatMap(({ text }, at) => (hidden(text) ? [at] : []))
    const name = (gap: number, word: string) => behind(before(look.values.source, places[gap] ?? 0), word)
    const gaps = output.gaps.map((gap, at) => gap.slice(0, SHOWN).map(([word, share]) => `${name(at, word)} ${percent(share)}`).join(' · '))
    return { text: output.text, more: gaps.join('; '), said: output.gaps.map((gap) => gap[0]?.[0]).join('\n'), bag: [...gaps].sort().join('\n') }
  }
  if (gone) {
    const text = `… ${gone.map(({ piece }) => piece.replace(/[▁Ġ]/g, ' ')).join('').trim() || '(ends here)'}`
    return { text, more: '', said: String(gone.map(({ id }) => id)), bag: text }
  }
  const next = look.values.said?.at(-1)
  if (!next?.length) return { text: '–', more: '', said: '', bag: '' }
  const name = (piece: string) => behind(before(look.values.source, look.values.source.length), piece)
  const shares = next.slice(0, SHOWN).map(({ piece, probability }) => `${name(piece)} ${percent(probability)}`)
  return { text: `… ${name(next[0]!.piece)}`, more: shares.join(' · '), said: name(next[0]!.piece), bag: shares.join('\n') }
}
