import { describe, expect, it } from 'vitest'
import { pieces, received, sourceOf, spliced, steered } from '../../serving/lib/answer'
import { linked, shade, shares, told, type At } from '../../serving/lib/attended'
import { cut, trimmed, units } from '../../serving/lib/places'
import type { SentTranslation } from '../../serving/lib/types'
import { best, placed } from '../../serving/lib/translator.svelte'

/** Each word in capitals and backwards, places in code points. */
function sent(text: string, translation: string, more: Partial<SentTranslation> = {}): SentTranslation {
  const places = (whole: string, pattern: RegExp, by = 0): [number, number][] =>
    [...whole.matchAll(pattern)].map((found) => [by + [...whole.slice(0, found.index)].length, by + [...whole.slice(0, found.index)].length + [...found[0]].length])
  const [sources, targets] = [places(text, /[^.]+\.\s*/gu), places(translation, /[^.]+\.\s*/gu)]
  return {
    text: translation,
    source: 'en',
    sentences: sources.map((source, number) => {
      const target = targets[number]!
      const inside = (whole: string, [begin, end]: [number, number]) => places([...whole].slice(begin, end).join(''), /\S+/gu, begin)
      const [source_words, target_words] = [inside(text, source), inside(translation, target)]
      return {
        source,
        target,
        source_words,
        target_words,
        links: source_words.map((_, word) => [word, word] as [number, number]),
        weights: target_words.map((_, row) => source_words.map((_, column) => (row === column ? 0.7 : 0.3 / source_words.length))),
        words: target_words.map(([begin, end]) => ({ begin, end, confidence: 0.5 })),
        unsure: null,
        warning: '',
      }
    }),
    ...more,
  }
}

const GIVEN = 'A 🐕 runs. Two 🐕🐕 sleep. '
const TEXT = 'Ein 🐕 läuft. Zwei 🐕🐕 schlafen. '
const ANSWER = received(GIVEN, sent(GIVEN, TEXT))

describe('places', () => {
  it('are those of the strings of the page, whatever the characters', () => {
    expect(ANSWER.sentences.map(({ targetWords }) => targetWords.map((word) => cut(TEXT, word)))).toEqual([
      ['Ein', '🐕', 'läuft.'],
      ['Zwei', '🐕🐕', 'schlafen.'],
    ])
    expect(ANSWER.sentences.map(({ sourceWords }) => sourceWords.map((word) => cut(GIVEN, word)))[1]).toEqual(['Two', '🐕🐕', 'sleep.'])
    const at = units('a🐕b')
    expect([0, 1, 2, 3, 9].map(at)).toEqual([0, 1, 3, 4, 4])
    expect(trimmed(' a ', { begin: 0, end: 3 })).toEqual({ begin: 1, end: 2 })
  })

  it('divide a text into pieces that are the text again', () => {
    const all = pieces(TEXT, ANSWER.sentences.map(({ target, targetWords }) => ({ place: target, words: targetWords })))
    expect(all.map(({ text }) => text).join('')).toBe(TEXT)
    expect(all.filter(({ word }) => word !== null).map(({ text, sentence, word }) => `${sentence}${word}${text}`)).toEqual(['00Ein', '01🐕', '02läuft.', '10Zwei', '11🐕🐕', '12schlafen.'])
    expect(pieces(TEXT, [])).toEqual([{ text: TEXT, sentence: null, word: null }])
    expect(pieces('', [])).toEqual([])
  })
})

describe('another translation of a sentence', () => {
  const other = received('A 🐕 runs.', sent('A 🐕 runs.', 'Da 🐕 rennt jetzt.'), 'Da 🐕')

  it('stands in the place of the first, and all behind it moves', () => {
    const found = spliced(ANSWER, 0, other)
    expect(found.text).toBe('Da 🐕 rennt jetzt. Zwei 🐕🐕 schlafen. ')
    expect(found.sentences.map(({ targetWords }) => targetWords.map((word) => cut(found.text, word)))).toEqual([
      ['Da', '🐕', 'rennt', 'jetzt.'],
      ['Zwei', '🐕🐕', 'schlafen.'],
    ])
    expect(found.sentences.map((sentence) => sourceOf(found, sentence))).toEqual(['A 🐕 runs.', 'Two 🐕🐕 sleep.'])
    expect(found.sentences[0]!.chosen).toBe('Da 🐕'.length)
    expect(ANSWER.text).toBe(TEXT)
  })

  it('stays as long as its sentence does, wherever that stands', () => {
    const choices = [{ sentence: 'A 🐕 runs.', answer: other }]
    const later = 'Two 🐕🐕 sleep. A 🐕 runs. '
    const found = steered(received(later, sent(later, 'Zwei 🐕🐕 schlafen. Ein 🐕 läuft. ')), choices)
    expect(found.text).toBe('Zwei 🐕🐕 schlafen. Da 🐕 rennt jetzt. ')
    expect(cut(found.text, { begin: 0, end: found.sentences[1]!.chosen! })).toBe('Zwei 🐕🐕 schlafen. Da 🐕')
    expect(steered(received('Two.', sent('Two.', 'Zwei.')), choices).text).toBe('Zwei.')
  })

  it('of the same sentence the last one holds', () => {
    const last = received('A 🐕 runs.', sent('A 🐕 runs.', 'Der 🐕 läuft.'), 'Der')
    const choices = [other, last].map((answer) => ({ sentence: 'A 🐕 runs.', answer }))
    expect(steered(ANSWER, choices).text.startsWith('Der')).toBe(true)
    expect(steered(ANSWER, choices.slice(0, 1)).text.startsWith('Da')).toBe(true)
  })

  it('says nothing of a prefix that it does not begin with', () => {
    expect(received('A.', sent('A.', 'Ein.'), 'Zwei').sentences[0]!.chosen).toBeNull()
  })
})

describe('other words', () => {
  it('are of the word that has most in common with what was pointed at', () => {
    const others = (word: string) => [{ word, probability: 0.1, text: '' }]
    const all = [
      { begin: 0, end: 3, others: others('Der') },
      { begin: 4, end: 5, others: others('🐈') },
      { begin: 6, end: 11, others: others('rennt') },
      { begin: 11, end: 12, others: others('!') },
    ]
    // 🐕 is one character for the server, two units here
    expect(best('Ein 🐕 läuft.', all, { begin: 7, end: 13 })).toEqual({ begin: 7, others: others('rennt') })
    expect(best('Ein 🐕 läuft.', all, { begin: 4, end: 6 })).toEqual({ begin: 4, others: others('🐈') })
    expect(best('Ein', [], { begin: 0, end: 3 })).toEqual({ begin: 0, others: [] })
  })
})

describe('another word', () => {
  it.each([
    ['Ein Mann ', 'im', 'Ein Mann im Hemd.', 'im', 'Ein Mann im', 'Hemd.'],
    ['Ein Mann ', ',', 'Ein Mann, der geht.', ',', 'Ein Mann,', 'der geht.'],
    ['Ein rotes ', 'T', 'Ein rotes T-Shirt.', 'T-Shirt', 'Ein rotes T-Shirt', '.'],
    ['', 'Der', 'Der Mann.', 'Der', 'Der', 'Mann.'],
    ['Ein ', 'Hund', 'Das Tier.', 'Hund', 'Ein Hund', ''],
  ])('stands where it does: %j %s', (before, word, text, ...[whole, prefix, rest]) => {
    expect(placed(before, { word, text, probability: 0.1 })).toEqual({ word: whole, prefix, rest })
  })
})

describe('what a word attended to', () => {
  const down: At = { side: 'target', sentence: 0, word: 2 }
  const up: At = { side: 'source', sentence: 0, word: 2 }
  const sentence = ANSWER.sentences[0]!

  it('is a row of the weights, and by what it was attended to a column', () => {
    expect(shares(sentence, down)).toEqual([0.3 / 3, 0.3 / 3, 0.7])
    expect(shares({ ...sentence, weights: [[0.2, 0.8], [0.5, 0.5], [1, 0]] }, { ...up, word: 1 })).toEqual([0.8, 0.5, 0])
    expect([0, 2].map((other) => linked(sentence, down, other))).toEqual([false, true])
  })

  it('is the darker the more, and not seen where it is next to nothing', () => {
    expect([0, 1, 2].map((other) => shade([0.03, 0.35, 0.7], other))).toEqual([0, 0.5, 1])
    expect(shade([0.1, 0.1], 0)).toBeCloseTo(0.25)
    expect(shade([], 3)).toBe(0)
  })

  it('is told in a sentence, without punctuation', () => {
    expect(told(ANSWER, down)).toBe('“läuft” looked at “runs” 70\u00a0%, “A” 10\u00a0%, “🐕” 10\u00a0%')
    expect(told(ANSWER, up)).toBe('At “runs” looked “läuft” 70\u00a0%, “Ein” 10\u00a0%, “🐕” 10\u00a0%')
    expect(told(received('A.', { ...sent('A.', 'Ein.'), sentences: [] }), down)).toBe('')
  })
})
