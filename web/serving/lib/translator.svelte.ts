/** What is translated, how, and what came of it. */

import { Latest } from '../../src/lib/debounce'
import { aborted } from '../../src/lib/errors'
import { count } from '../../src/lib/numbers'
import { joined, received, sourceOf, steered, type Answer, type Choice, type Sentence } from './answer'
import { detect, Refused, translate, words } from './api'
import { common, cut, span, trimmed, units, type Span } from './places'
import type { Language, Other, SentWord, Settings, Term } from './types'

/** How many other words, and other translations, are asked for. */
const OTHERS = 6
const ALTERNATIVES = 3

export class Translator {
  text = $state('')
  /** Null: it is detected. */
  source = $state<string | null>(null)
  target = $state('')
  terms = $state<Term[]>([])
  /** Other translations of the whole are wanted. */
  alternatives = $state(false)

  languages = $state.raw<Language[]>([])
  characters = $state(Infinity)

  busy = $state(false)
  problem = $state<string | null>(null)
  /** A request is made again by itself. */
  again = $state(false)

  #received = $state.raw<Answer | null>(null)
  #choices = $state.raw<Choice[]>([])
  #latest = new Latest(250)
  #texts = 1
  #known = new Map<string, Answer>()
  #others = new Map<string, Promise<SentWord[]>>()

  readonly answer = $derived(this.#received && steered(this.#received, this.#choices))
  /** It is a translation of what stands there now. */
  readonly fresh = $derived(!this.busy && this.answer?.given === this.text)
  /** Which choice was the last of those that are seen. */
  readonly #last = $derived.by(() => {
    const there = new Set(this.answer?.sentences.map((one) => sourceOf(this.answer!, one)))
    return this.#choices.findLastIndex(({ sentence }) => there.has(sentence))
  })
  readonly undoable = $derived(this.#last >= 0)
  readonly usedTerms = $derived(this.terms.map(({ source, target }) => ({ source: source.trim(), target: target.trim() })).filter(({ source, target }) => source && target))
  readonly tooMany = $derived(Math.max(0, [...this.text].length - this.characters))
  readonly targets = $derived.by(() => {
    const from = this.languages.filter(({ code }) => this.source === null || code === this.source)
    const codes = new Set(from.flatMap(({ targets }) => targets))
    return [...codes].map((code) => ({ code, name: this.name(code) })).sort((one, other) => one.name.localeCompare(other.name))
  })

  open(languages: Language[], limits: Settings['limits'], preferred: readonly string[]): void {
    this.languages = languages
    this.characters = limits.characters
    this.#texts = limits.texts
    if (languages.length === 1) this.source = languages[0]!.code
    const wanted = preferred.map((code) => code.split('-')[0]!)
    this.target = wanted.find((code) => this.targets.some((one) => one.code === code)) ?? this.targets[0]?.code ?? ''
  }

  name(code: string): string {
    return this.languages.find((one) => one.code === code)?.name ?? languageName(code)
  }

  from(code: string | null): void {
    if (code === this.target && this.source) this.target = this.source
    this.source = code
    if (!this.targets.some((one) => one.code === this.target)) this.target = this.targets[0]?.code ?? ''
    this.anew()
  }

  into(code: string): void {
    this.target = code
    this.anew()
  }

  /** What the other direction would be; null: there is none. */
  readonly swapped = $derived.by((): { source: string; target: string } | null => {
    const from = this.source ?? this.answer?.language
    if (!from || !this.languages.some(({ code, targets }) => code === this.target && targets.includes(from))) return null
    return { source: this.target, target: from }
  })

  swap(): void {
    if (!this.swapped) return
    const text = this.fresh ? this.answer!.text : this.text
    ;({ source: this.source, target: this.target } = this.swapped)
    this.text = text
    this.anew()
  }

  typed(text: string): void {
    this.text = text
    this.refresh()
  }

  /** By other languages or terms: what was chosen before holds no more. */
  anew(wait = 0): void {
    this.#choices = []
    this.#others.clear()
    this.refresh(wait)
  }

  refresh(wait?: number): void {
    this.#latest.stop()
    this.problem = null
    this.again = false
    this.busy = false
    if (!this.text.trim()) this.#received = null
    else if (this.tooMany) this.problem = `This text has ${count(this.tooMany)} ${this.tooMany === 1 ? 'character' : 'characters'} more than the server takes at once.`
    else if (this.target) {
      this.busy = true
      this.#ask(wait)
    }
  }

  #ask(wait?: number): void {
    const given = this.text
    this.#latest.run(
      (signal) =>
        this.#meanwhile(async () => {
          this.#received = await this.#translated(given, signal)
        }, () => this.refresh(0)),
      wait,
    )
  }

  /** Paragraph by paragraph: those that did not change are not asked for again. */
  async #translated(text: string, signal: AbortSignal): Promise<Answer> {
    const { language, confidence } = await this.#language(text, signal)
    const options = { ...this.#options(language), ...(this.alternatives ? { alternatives: ALTERNATIVES } : {}) }
    const parts = text.split(/(\n+)/)
    const name = (part: string) => JSON.stringify([part, options])
    const missing = [...new Set(parts.filter((part) => part.trim() && !this.#known.has(name(part))))]
    for (let at = 0; at < missing.length; at += this.#texts) {
      const texts = missing.slice(at, at + this.#texts)
      const sent = await translate({ texts, ...options }, signal)
      texts.forEach((part, place) => this.#known.set(name(part), received(part, sent[place]!)))
    }
    const used = new Map(parts.flatMap((part) => (part.trim() ? [[name(part), this.#known.get(name(part))!]] : [])))
    this.#known = used
    return joined(parts.map((part) => used.get(name(part)) ?? part), language, confidence)
  }

  /** That of the text; if it was detected, how probable it is. A text in the language to write is translated into another. */
  async #language(text: string, signal: AbortSignal): Promise<{ language: string; confidence: number | null }> {
    if (this.source !== null) return { language: this.source, confidence: null }
    const served = (code: string) => this.languages.find((one) => one.code === code)
    const guess = (await detect(text, signal)).find(({ language }) => served(language))
    const language = guess?.language ?? this.languages.find(({ targets }) => targets.includes(this.target))!.code
    if (language === this.target) this.target = served(language)!.targets[0] ?? this.target
    return { language, confidence: guess?.confidence ?? null }
  }

  #options(source: string) {
    return { source, target: this.target, details: true as const, ...(this.usedTerms.length ? { terms: this.usedTerms } : {}) }
  }

  async #meanwhile(work: () => Promise<void>, retry: () => void): Promise<void> {
    try {
      await work()
      this.problem = null
      this.again = false
      this.busy = false
    } catch (error) {
      if (aborted(error)) return
      this.busy = false
      this.problem = error instanceof Refused ? error.message : String(error)
      const again = error instanceof Refused ? error.again : null
      this.again = again !== null
      if (again !== null) this.#latest.run(async () => retry(), again * 1000)
    }
  }

  /** Other words in the place of one, and where in the sentence it begins. */
  async others(sentence: Sentence, word: Span): Promise<{ begin: number; others: Other[] }> {
    const answer = this.answer!
    const place = trimmed(answer.text, sentence.target)
    const [text, translation] = [sourceOf(answer, sentence), cut(answer.text, place)]
    const name = JSON.stringify([text, translation])
    if (!this.#others.has(name)) {
      const asked = words({ text, source: answer.language, target: this.target, n: OTHERS, translation }, new AbortController().signal)
      this.#others.set(name, asked)
      asked.catch(() => this.#others.delete(name))
    }
    const own = { begin: word.begin - place.begin, end: word.end - place.begin }
    return best(translation, await this.#others.get(name)!, own)
  }

  /** Begin a sentence with this; the rest is searched again. */
  choose(sentence: Sentence, prefix: string): void {
    const answer = this.answer!
    const text = sourceOf(answer, sentence)
    this.#latest.stop()
    this.busy = true
    this.#latest.run(
      (signal) =>
        this.#meanwhile(async () => {
          const [sent] = await translate({ texts: [text], ...this.#options(answer.language), prefixes: [prefix] }, signal)
          this.#choices = [...this.#choices, { sentence: text, answer: received(text, sent!, prefix) }]
        }, () => this.choose(sentence, prefix)),
      0,
    )
  }

  undo(): void {
    this.#choices = this.#choices.toSpliced(this.#last, 1)
  }
}

/** The word of the model that a word between blanks is, and its others. */
export function best(translation: string, all: readonly SentWord[], own: Span): { begin: number; others: Other[] } {
  const places = all.map((word) => ({ ...span([word.begin, word.end], units(translation)), others: word.others }))
  const found = places.filter((word) => common(word, own)).sort((one, other) => common(other, own) - common(one, own))[0]
  return { begin: found?.begin ?? own.begin, others: found?.others ?? [] }
}

/** Another word where it stands: the translation up to it and with it, and what follows. */
export function placed(before: string, { word, text }: Other): { word: string; prefix: string; rest: string } {
  const begin = text.indexOf(word, before.trimEnd().length) // punctuation stands closer than the word that was there
  if (begin < 0) return { word, prefix: before + word, rest: '' }
  const end = begin + word.length
  const [joined] = /^(?:[-'’]?[\p{L}\p{N}]+)*/u.exec(text.slice(end))! // “T” of “T-Shirt”
  return { word: word + joined, prefix: text.slice(0, end + joined.length), rest: text.slice(end + joined.length).trimStart() }
}

function languageName(code: string): string {
  try {
    return new Intl.DisplayNames('en', { type: 'language' }).of(code) ?? code
  } catch {
    return code
  }
}
