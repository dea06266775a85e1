/** What the server says and is asked. Layers and heads count from 1, places of tokens from 0. */

import type { NGramShares } from './ngrams'
import type { Classic, Walk } from './walk'

export type Kind = 'encoder' | 'decoder' | 'cross' | 'pool'
export type Side = 'source' | 'target' | 'written' | 'whole'
export type Stack = 'encoder' | 'decoder'
export type Merge = 'head' | 'mean' | 'max' | 'rollout'

export const KINDS: readonly Kind[] = ['encoder', 'decoder', 'cross', 'pool']

export function isKind(word: string | null | undefined): word is Kind {
  return KINDS.some((kind) => kind === word)
}

/** Whether the tokens of a text look at each other, from layer to layer. */
export function within(kind: Kind): boolean {
  return kind === 'encoder' || kind === 'decoder'
}

export interface Model {
  number: number
  name: string
  folder: string
  /** It comes with Regard, and knows a tiny grammar only. */
  shipped?: boolean
  task: string
  family: string
  title: string
  kinds: Partial<Record<Kind, [number, number]>>
  /** Of a module of one's own: the path of the part that is each layer. */
  parts?: Partial<Record<Kind, string[]>>
  stacks: Stack[]
  d_model: number
  divisor: number
  positions: boolean
  masked: Kind[]
  max_tokens: number
  parameters: number | null
  reads: 'text' | 'gapped' | 'image'
  writes: 'text' | 'continuation' | 'words' | 'classes' | 'tags' | 'nothing'
  sides: ('source' | 'target')[]
  labels: string[] | null
  /** What a translator of several is told, the usual first: languages of sources that have tokens, and of targets. */
  languages?: [string[], string[]] | null
  ready: boolean
  why: string | null
  snapshots: string[]
  /** A name for the weights that the folder holds now, which is another when they are; null: there are none yet. */
  weights: string | null
  /** Which weights of a training that goes on are in its folder. */
  keeps: 'best' | 'newest'
  course: boolean
  /** Whether it was measured what the demonstration's model does without an idea. */
  without?: boolean
  running: boolean
  /** What the loss of training counts, and that of validation does not. */
  harder: { label_smoothing?: number; dropout?: number; adversarial?: number }
  image: { height: number; width: number; channels: number; largest: number; patch: number } | null
  examples: string[]
  /** What was found of a demonstration's pronouns; and why it cannot be shown, where its file is no good. */
  walk?: Walk | null
  walk_why?: string | null
  /** The two sentences of a demonstration, which are there before anything was measured. */
  classic?: Classic | null
}

export interface State {
  version: string
  /** Of a page that was saved as a static site: the questions that have an answer, by `fileName`. */
  saved?: string[]
  models: Model[]
}

export interface Changes {
  off: [Kind, number, number][]
  positions: boolean
  scaling: boolean
  mask: boolean
}

export type Between = [string | null, string | null]

export interface Asked {
  model: number
  snapshot: string | null
  text: string
  target: string | null
  branch: number[] | null
  image: { number: number } | { pixels: number[] } | null
  changes: Changes
  /** Which part of a text that is longer than the model reads, from 1; nothing: the one that suits. */
  window?: number | null
  /** The languages of what is read and of what is written; nothing: the usual ones. */
  between?: Between | null
  /** The name of the weights that are meant, as a look told it: others do not answer. */
  weights?: string | undefined
}

export interface Token {
  text: string
  start: number
  end: number
  special: boolean
}

export interface Said {
  id: number
  piece: string
  probability: number
}

export interface Tagged {
  start: number
  end: number
  text: string
  tag: string
  probability: number
}

export type Output =
  | { kind: 'text'; text: string }
  | { kind: 'classes'; classes: [string, number][]; said: string | string[] | number; several: boolean; ngrams?: NGramShares }
  | { kind: 'tags'; tags: Tagged[] }
  | { kind: 'words'; gaps: [string, number][][]; text: string }
  | { kind: 'continuation' }
  | { kind: 'nothing' }

/** A part of a text that is longer than the model reads; all counts from 1. */
export interface Window {
  text: string
  number: number
  count: number
  /** Its tokens among the `total` of the text. */
  first: number
  last: number
  total: number
}

export interface LookValues {
  source_text: string
  target_text: string
  source: Token[]
  target: Token[]
  written: Token[]
  /** Where one query, the same for every text, weighs it: the only row. */
  whole?: Token[]
  words: Partial<Record<Side, [string, number[]][]>>
  kinds: Partial<Record<Kind, { layers: number; heads: number; queries: Side; keys: Side }>>
  output: Output
  said: Said[][] | null
  probability: (number | null)[] | null
  /** The numbers of the pieces that were written, where the model writes a text of its own. */
  branch: number[] | null
  /** Patches of an image, and what it is known to be. */
  image: { rows: number; columns: number; label: string | null } | null
  /** The name of the weights that it was made with; not in a file of its own. */
  weights?: string
  /** What is seen of the text, and of what the model is made to write; null: all. */
  window?: Window | null
  target_window?: Window | null
  /** Words of what is read that training never saw, with their characters; null: the folder does not say. */
  unseen?: [string, number, number][] | null
  /** Where it was asked for: the head to begin with, and which of the words that look. */
  opening?: { layer: number; head: number; query: number } | null
}

export interface WrittenToken {
  id: number
  piece: string
  probability: number
  others: [string, number][]
}
