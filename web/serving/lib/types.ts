/** What the server says, as it sends it: places are code points from the beginning. */

export type Place = [begin: number, end: number]

export interface Settings {
  version: string
  needs_key: boolean
  attention: string | null
  limits: { characters: number; texts: number; document_bytes: number }
  documents: string[]
}

export interface Language {
  code: string
  name: string
  targets: string[]
}

export interface Guess {
  language: string
  confidence: number
}

export interface Term {
  source: string
  target: string
}

export interface SentSentence {
  source: Place
  target: Place
  source_words: Place[]
  target_words: Place[]
  links: [number, number][]
  weights: number[][]
  words: { begin: number; end: number; confidence: number }[]
  unsure: boolean | null
  warning: string
}

export interface SentTranslation {
  text: string
  source: string
  through?: string | null
  alternatives?: string[]
  warnings?: string[]
  sentences?: SentSentence[]
}

export interface Asked {
  texts: string[]
  source: string
  target: string
  alternatives?: number
  details: true
  terms?: Term[]
  prefixes?: string[]
}

export interface Other {
  word: string
  probability: number
  text: string
}

export interface SentWord {
  begin: number
  end: number
  others: Other[]
}

export interface JobName {
  id: string
  secret: string
}

export interface Job {
  status: 'queued' | 'translating' | 'done' | 'error'
  name: string
  done: number
  segments: number
  characters: number
  seconds: number | null
  error: string | null
  report: string[]
}
