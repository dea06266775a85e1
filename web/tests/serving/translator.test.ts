import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Translator } from '../../serving/lib/translator.svelte'
import type { Asked } from '../../serving/lib/types'

const LANGUAGES = [
  { code: 'en', name: 'English', targets: ['de', 'fr'] },
  { code: 'de', name: 'German', targets: ['en'] },
]

const LIMITS = { characters: 20, texts: 2, document_bytes: 100 }

interface Sent {
  body: Asked
  signal: AbortSignal
  answer: (status: number, body?: object, headers?: Record<string, string>) => Promise<void>
}
let sent: Sent[]

/** What was asked, which a test answers when it wants; abandoned requests end as those of a browser. */
beforeEach(() => {
  vi.useFakeTimers()
  sent = []
  vi.stubGlobal(
    'fetch',
    (_: string, { body, signal }: { body: string; signal: AbortSignal }) =>
      new Promise((resolve, reject) => {
        const answer = async (status: number, told: object = {}, headers: Record<string, string> = {}) => {
          resolve(new Response(JSON.stringify(told), { status, headers }))
          await vi.advanceTimersByTimeAsync(0)
        }
        sent.push({ body: JSON.parse(body) as Asked, signal, answer })
        signal.addEventListener('abort', () => reject(new DOMException('', 'AbortError')))
      }),
  )
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

/** The answer to a question: of each text one sentence, one word. */
function translated({ texts, source, prefixes, alternatives }: Asked) {
  const translations = texts.map((given) => {
    const text = prefixes ? `${prefixes[0]}!` : `<${given}>`
    const place = [0, text.length]
    const sentences = [{ source: [0, given.length], target: place, source_words: [], target_words: [place], links: [], weights: [], words: [], unsure: null, warning: '' }]
    return { text, source, sentences, alternatives: alternatives ? [`(${given})`] : [] }
  })
  return { translations }
}

function opened(): Translator {
  const translator = new Translator()
  translator.open(LANGUAGES, LIMITS, ['de-AT', 'en'])
  translator.from('en')
  return translator
}

async function answered(translator: Translator, text: string): Promise<void> {
  translator.typed(text)
  await vi.advanceTimersByTimeAsync(250)
  await sent.at(-1)!.answer(200, translated(sent.at(-1)!.body))
}

describe('typing', () => {
  it('asks when one pauses, and each request cancels the last', async () => {
    const translator = opened()
    translator.typed('a')
    await vi.advanceTimersByTimeAsync(200)
    translator.typed('ab')
    await vi.advanceTimersByTimeAsync(249)
    expect(sent).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(sent[0]!.body).toEqual({ texts: ['ab'], source: 'en', target: 'de', details: true })
    translator.typed('abc')
    expect(sent[0]!.signal.aborted).toBe(true)
    await vi.advanceTimersByTimeAsync(250)
    await sent[1]!.answer(200, translated(sent[1]!.body))
    expect([translator.answer!.text, translator.fresh, translator.problem]).toEqual(['<abc>', true, null])
  })

  it('keeps the last result until the next, and none of an empty text', async () => {
    const translator = opened()
    await answered(translator, 'ab')
    translator.typed('abc')
    expect([translator.answer!.text, translator.fresh]).toEqual(['<ab>', false])
    translator.typed(' ')
    expect([translator.answer, translator.busy]).toEqual([null, false])
    await vi.advanceTimersByTimeAsync(5000)
    expect(sent).toHaveLength(1)
  })

  it('of too much asks for nothing, and says so', async () => {
    const translator = opened()
    translator.typed('🐕'.repeat(21))
    await vi.advanceTimersByTimeAsync(1000)
    expect(translator.problem).toBe('This text has 1 character more than the server takes at once.')
    expect(sent).toEqual([])
  })
})

describe('a request that is refused', () => {
  it('is made again after as long as the server says', async () => {
    const translator = opened()
    translator.typed('ab')
    await vi.advanceTimersByTimeAsync(250)
    await sent[0]!.answer(429, { error: 'too much at once' }, { 'retry-after': '3' })
    expect([translator.problem, translator.again, translator.busy]).toEqual(['Too much at once.', true, false])
    await vi.advanceTimersByTimeAsync(2999)
    expect(sent).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(2)
    await sent[1]!.answer(200, translated(sent[1]!.body))
    expect([translator.problem, translator.again, translator.answer!.text]).toEqual([null, false, '<ab>'])
  })

  it('for good is not', async () => {
    const translator = opened()
    translator.typed('ab')
    await vi.advanceTimersByTimeAsync(250)
    await sent[0]!.answer(413)
    expect([translator.problem, translator.again]).toEqual(['This is more than the server takes at once.', false])
    await vi.advanceTimersByTimeAsync(60_000)
    expect(sent).toHaveLength(1)
  })

  it('is forgotten when one goes on typing', async () => {
    const translator = opened()
    translator.typed('ab')
    await vi.advanceTimersByTimeAsync(250)
    await sent[0]!.answer(503, {}, { 'retry-after': '1' })
    translator.typed('abc')
    await vi.advanceTimersByTimeAsync(250)
    await sent[1]!.answer(200, translated(sent[1]!.body))
    await vi.advanceTimersByTimeAsync(5000)
    expect(sent).toHaveLength(2)
  })
})

describe('languages', () => {
  it('are those of the reader at first, and always a pair that is served', () => {
    const translator = opened()
    translator.from(null)
    expect([translator.source, translator.target]).toEqual([null, 'de'])
    translator.from('de')
    expect(translator.target).toBe('en')
    expect(translator.targets.map(({ name }) => name)).toEqual(['English'])
    const alone = new Translator()
    alone.open(LANGUAGES.slice(0, 1), LIMITS, ['it'])
    expect([alone.source, alone.target, alone.targets.map(({ name }) => name)]).toEqual(['en', 'fr', ['French', 'German']])
  })

  it('swap with the texts, where the other direction is served', async () => {
    const translator = opened()
    await answered(translator, 'ab')
    expect(translator.swapped).toEqual({ source: 'de', target: 'en' })
    translator.swap()
    expect([translator.text, translator.source, translator.target]).toEqual(['<ab>', 'de', 'en'])
    translator.from('en')
    expect(translator.target).toBe('de')
    translator.into('fr')
    expect(translator.swapped).toBeNull()
  })

  it('are detected: the first that is served, and the text is not translated into its own', async () => {
    const translator = opened()
    translator.from(null)
    translator.into('en')
    expect(translator.swapped).toBeNull()
    translator.typed('ab')
    await vi.advanceTimersByTimeAsync(250)
    await sent[0]!.answer(200, { guesses: [{ language: 'nl', confidence: 0.6 }, { language: 'en', confidence: 0.3 }] })
    expect(sent[1]!.body).toMatchObject({ source: 'en', target: 'de' })
    await sent[1]!.answer(200, translated(sent[1]!.body))
    expect([translator.target, translator.answer!.language, translator.answer!.guessed]).toEqual(['de', 'en', 0.3])
    expect(translator.swapped).toEqual({ source: 'de', target: 'en' })
    translator.typed('12')
    await vi.advanceTimersByTimeAsync(250)
    await sent[2]!.answer(200, { guesses: [] })
    expect(sent[3]!.body).toMatchObject({ source: 'en', target: 'de' })
  })
})

describe('paragraphs', () => {
  it('that did not change are not asked for again', async () => {
    const translator = opened()
    await answered(translator, 'a\n\nb\na\n')
    expect(sent[0]!.body.texts).toEqual(['a', 'b'])
    const { answer } = translator
    expect([answer!.text, answer!.given]).toEqual(['<a>\n\n<b>\n<a>\n', 'a\n\nb\na\n'])
    expect(answer!.sentences.map(({ source, target }) => [source.begin, target.begin])).toEqual([[0, 0], [3, 5], [5, 9]])
    await answered(translator, 'a\n\nc\na\n')
    expect(sent[1]!.body.texts).toEqual(['c'])
    expect(translator.answer!.text).toBe('<a>\n\n<c>\n<a>\n')
    translator.alternatives = true
    translator.refresh(0)
    await vi.advanceTimersByTimeAsync(0)
    await sent[2]!.answer(200, translated(sent[2]!.body))
    expect(translator.answer!.alternatives).toEqual(['(a)\n\n(c)\n(a)\n'])
  })

  it('are as many in a request as the server takes', async () => {
    const translator = opened()
    await answered(translator, 'a\nb\nc')
    await sent[1]!.answer(200, translated(sent[1]!.body))
    expect(sent.map(({ body }) => body.texts)).toEqual([['a', 'b'], ['c']])
    expect(translator.answer!.text).toBe('<a>\n<b>\n<c>')
  })
})

describe('a word that was chosen', () => {
  it('begins the sentence; undone it is gone; by other terms too', async () => {
    const translator = opened()
    await answered(translator, 'ab')
    translator.choose(translator.answer!.sentences[0]!, 'Da')
    await vi.advanceTimersByTimeAsync(0)
    expect(sent[1]!.body).toEqual({ texts: ['ab'], source: 'en', target: 'de', details: true, prefixes: ['Da'] })
    await sent[1]!.answer(200, translated(sent[1]!.body))
    expect([translator.answer!.text, translator.undoable]).toEqual(['Da!', true])
    await answered(translator, 'abc')
    expect([translator.answer!.text, translator.undoable]).toEqual(['<abc>', false])
    await answered(translator, 'ab')
    expect([translator.answer!.text, translator.undoable]).toEqual(['Da!', true])
    translator.undo()
    expect([translator.answer!.text, translator.undoable]).toEqual(['<ab>', false])
    translator.terms.push({ source: ' a ', target: 'b' }, { source: 'c', target: ' ' })
    translator.anew()
    await vi.advanceTimersByTimeAsync(0)
    expect(sent.at(-1)!.body.terms).toEqual([{ source: 'a', target: 'b' }])
  })
})
