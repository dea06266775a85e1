/** A translation as the page shows it: sentences and words with places in its strings, and what was chosen in it. */

import { common, cut, moved, span, trimmed, units, type Span } from './places'
import type { SentTranslation } from './types'

export interface Sentence {
  source: Span
  target: Span
  sourceWords: Span[]
  targetWords: Span[]
  /** Of each target word. */
  confidence: (number | null)[]
  links: readonly (readonly [number, number])[]
  /** A row for each target word, a column for each source word. */
  weights: readonly (readonly number[])[]
  unsure: boolean
  warning: string
  /** The end of what was chosen, in the translation. */
  chosen: number | null
}

export interface Answer {
  /** What it is a translation of. */
  given: string
  text: string
  language: string
  guessed: number | null
  through: string | null
  alternatives: string[]
  warnings: string[]
  sentences: Sentence[]
}

/** A sentence and what is to stand for its translation. */
export interface Choice {
  sentence: string
  answer: Answer
}

export function received(given: string, sent: SentTranslation, prefix = ''): Answer {
  const [source, target] = [units(given), units(sent.text)]
  const chosen = prefix && sent.text.startsWith(prefix) ? prefix.length : null
  const sentences = (sent.sentences ?? []).map((one): Sentence => {
    const words = one.words.map((word) => ({ ...span([word.begin, word.end], target), confidence: word.confidence }))
    const targetWords = one.target_words.length ? one.target_words.map((place) => span(place, target)) : words.map(({ begin, end }) => ({ begin, end }))
    return {
      source: span(one.source, source),
      target: span(one.target, target),
      sourceWords: one.source_words.map((place) => span(place, source)),
      targetWords,
      confidence: targetWords.map((word) => least(words.filter((other) => common(word, other)).map(({ confidence }) => confidence))),
      links: one.links,
      weights: one.weights,
      unsure: one.unsure === true,
      warning: one.warning,
      chosen,
    }
  })
  return {
    given,
    text: sent.text,
    language: sent.source,
    guessed: null,
    through: sent.through ?? null,
    alternatives: sent.alternatives ?? [],
    warnings: sent.warnings ?? [],
    sentences,
  }
}

const least = (all: number[]) => (all.length ? Math.min(...all) : null)

export const sourceOf = (answer: Answer, sentence: Sentence) => cut(answer.given, trimmed(answer.given, sentence.source))

/** Of paragraphs, and what stands between them. */
export function joined(parts: readonly (Answer | string)[], language: string, guessed: number | null): Answer {
  const answers = parts.filter((part) => typeof part !== 'string')
  const others = Math.max(0, ...answers.map(({ alternatives }) => alternatives.length))
  const found: Answer = { given: '', text: '', language, guessed, through: null, alternatives: [], warnings: [], sentences: [] }
  for (const part of parts) {
    if (typeof part !== 'string') {
      found.sentences.push(...part.sentences.map((one) => shifted(one, found.given.length, found.text.length)))
      found.warnings.push(...part.warnings.filter((one) => !found.warnings.includes(one)))
      found.through ??= part.through
    }
    found.given += typeof part === 'string' ? part : part.given
    found.text += typeof part === 'string' ? part : part.text
  }
  for (let place = 0; place < others; place++) {
    found.alternatives.push(parts.map((part) => (typeof part === 'string' ? part : (part.alternatives[place] ?? part.text))).join(''))
  }
  return found
}

function shifted(one: Sentence, sourceBy: number, targetBy: number): Sentence {
  return {
    ...one,
    source: moved(one.source, sourceBy),
    target: moved(one.target, targetBy),
    sourceWords: one.sourceWords.map((word) => moved(word, sourceBy)),
    targetWords: one.targetWords.map((word) => moved(word, targetBy)),
    chosen: one.chosen === null ? null : one.chosen + targetBy,
  }
}

/** With the translation of one sentence in the place of another; blanks around it stay. */
export function spliced(answer: Answer, place: number, other: Answer): Answer {
  const old = answer.sentences[place]!
  const [source, target] = [trimmed(answer.given, old.source), trimmed(answer.text, old.target)]
  const by = other.text.length - (target.end - target.begin)
  return {
    ...answer,
    text: answer.text.slice(0, target.begin) + other.text + answer.text.slice(target.end),
    sentences: [
      ...answer.sentences.slice(0, place),
      ...other.sentences.map((one) => shifted(one, source.begin, target.begin)),
      ...answer.sentences.slice(place + 1).map((one) => shifted(one, 0, by)),
    ],
  }
}

/** With what was chosen, wherever its sentences still stand: of the same sentence the last choice holds. */
export function steered(answer: Answer, choices: readonly Choice[]): Answer {
  const last = new Map(choices.map(({ sentence, answer }) => [sentence, answer]))
  let found = answer
  for (let place = answer.sentences.length - 1; place >= 0; place--) {
    const other = last.get(sourceOf(answer, answer.sentences[place]!))
    if (other) found = spliced(found, place, other)
  }
  return found
}

/** Text between words, and words: end to end they are the text. */
export interface Piece {
  text: string
  sentence: number | null
  /** Of the sentence; null: it is no word. */
  word: number | null
}

export function pieces(text: string, sentences: readonly { place: Span; words: readonly Span[] }[]): Piece[] {
  const found: Piece[] = []
  let at = 0
  const until = (end: number, sentence: number | null, word: number | null = null) => {
    if (end > at) found.push({ text: text.slice(at, end), sentence, word })
    at = Math.max(at, end)
  }
  sentences.forEach(({ place, words }, sentence) => {
    until(place.begin, null)
    words.forEach(({ begin, end }, word) => {
      until(begin, sentence)
      until(end, sentence, word)
    })
    until(place.end, sentence)
  })
  until(text.length, null)
  return found
}
