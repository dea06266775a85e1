/** What a model made of a text, in one line, to be set beside what it made of another. */

import type { Look } from './look'
import { clean } from './names'
import { percent } from './numbers'
import type { Output } from './types'

export interface Outcome {
  text: string
  /** A few numbers behind it. */
  more: string
  /** The same for two outputs that say the same, in whatever order they say it. */
  bag: string
}

const SHOWN = 3

export function outcome(look: Look): Outcome {
  const output: Output = look.values.output
  if (output.kind === 'text') return { text: output.text, more: '', bag: output.text }
  if (output.kind === 'classes') {
    const said = Array.isArray(output.said) ? output.said.join(', ') || 'none of the labels' : String(output.said)
    const shares = output.classes.slice(0, SHOWN).map(([label, share]) => `${label} ${percent(share)}`)
    return { text: said, more: shares.join(' · '), bag: [said, ...shares].join('\n') }
  }
  if (output.kind === 'tags') {
    const tagged = output.tags.filter(({ tag }) => tag !== 'O').map(({ text, tag }) => `${text} ${tag}`)
    const all = output.tags.map(({ text, tag }) => `${text} ${tag}`).sort()
    return { text: tagged.join(' · ') || 'no tags', more: '', bag: all.join('\n') }
  }
  if (output.kind === 'words') {
    const gaps = output.gaps.map((gap) => gap.slice(0, SHOWN).map(([word, share]) => `${clean(word)} ${percent(share)}`).join(' · '))
    return { text: output.text, more: gaps.join('; '), bag: [...gaps].sort().join('\n') }
  }
  const next = look.values.said?.at(-1)
  if (!next?.length) return { text: '–', more: '', bag: '' }
  const shares = next.slice(0, SHOWN).map(({ piece, probability }) => `${clean(piece)} ${percent(probability)}`)
  return { text: `… ${clean(next[0]!.piece)}`, more: shares.join(' · '), bag: shares.join('\n') }
}
