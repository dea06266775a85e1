/** What a word of a translation attended to, and by which a word of the text was attended to. */

import { percent, unbroken } from '../../src/lib/numbers'
import type { Answer, Sentence } from './answer'
import { cut } from './places'

export type Side = 'source' | 'target'

/** A word that is pointed at. */
export interface At {
  side: Side
  sentence: number
  word: number
}

/** Less is not shown. */
const LEAST = 0.04
const TOLD = 3

/** Of each word of the other side: how much it attended, or was attended to. */
export function shares({ weights }: Sentence, { side, word }: At): readonly number[] {
  return side === 'target' ? (weights[word] ?? []) : weights.map((row) => row[word] ?? 0)
}

/** Whether a word of the other side belongs to it. */
export function linked({ links }: Sentence, { side, word }: At, other: number): boolean {
  return links.some(([source, target]) => (side === 'target' ? target === word && source === other : source === word && target === other))
}

/** The shade of a word, 0 to 1: the strongest stands out, as far as it is strong. */
export function shade(all: readonly number[], other: number): number {
  const share = all[other] ?? 0
  return share < LEAST ? 0 : share / Math.max(0.4, ...all)
}

/** In a sentence for those who see no shades; empty: nothing is known. */
export function told(answer: Answer, at: At): string {
  const sentence = answer.sentences[at.sentence]
  if (!sentence) return ''
  const own = at.side === 'target' ? cut(answer.text, sentence.targetWords[at.word]!) : cut(answer.given, sentence.sourceWords[at.word]!)
  const all = shares(sentence, at)
  const most = [...all.keys()].filter((other) => all[other]! >= LEAST).sort((one, other) => all[other]! - all[one]!).slice(0, TOLD)
  if (!most.length) return ''
  const name = (other: number) => (at.side === 'target' ? cut(answer.given, sentence.sourceWords[other]!) : cut(answer.text, sentence.targetWords[other]!))
  const list = most.map((other) => `“${bare(name(other))}” ${unbroken(percent(all[other]!))}`).join(', ')
  return at.side === 'target' ? `“${bare(own)}” looked at ${list}` : `At “${bare(own)}” looked ${list}`
}

/** A word without the punctuation at its ends. */
function bare(word: string): string {
  return word.replace(/^[\p{P}\p{S}]+(?=.*[\p{L}\p{N}])|(?<=[\p{L}\p{N}].*)[\p{P}\p{S}]+$/gu, '')
}
