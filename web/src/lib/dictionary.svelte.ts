/** The entries and the query that the reader has put into the soft dictionary; they stay while other views are looked at. */

import { wordsOf } from './lookup'

export interface Entry {
  /** Of keys that are points. */
  point: [number, number]
  /** Of keys that are words. */
  word: string
  number: number
  colour: string
}

export const FEWEST = 2
export const MOST = 12
/** Points lie between this and its negative. */
export const EDGE = 1.6
export const LETTERS = 'ABCDEFGHIJKL'
const COLOURS = ['#d1495b', '#edae49', '#3c8d5a', '#1a4fc4', '#7b4fa3', '#00798c', '#e07a5f', '#8d99ae', '#588157', '#bc6c25', '#3d405b', '#f2a1c4']

class Dictionary {
  keys = $state<'points' | 'words'>('points')
  values = $state<'numbers' | 'colours'>('numbers')
  points = $state<Entry[]>([])
  words = $state<Entry[]>([])
  point = $state<[number, number]>([0.7, 0.7])
  word = $state('')
  sharpness = $state({ points: 4, words: 10 })
  side = $state<'source' | 'target'>('source')
  /** Words that can be tried as queries. */
  tried = $state<string[]>([])
  /** The reader has changed the words: a new sentence leaves them alone. */
  touched = false

  constructor() {
    for (let at = 0; at < 5; at++) this.points.push({ ...this.#fresh(at), point: around(at / 5) })
  }

  #fresh(at: number): Entry {
    return { point: [0, 0], word: '', number: (at + 1) * 10, colour: COLOURS[at % COLOURS.length]! }
  }

  /** Words to begin with, of the first of some texts that has enough of them. */
  begin(texts: readonly (readonly string[])[]): void {
    if (this.touched) return
    const found = texts.map((words) => wordsOf(words)).find((one) => one !== null) ?? { keys: ['', ''], query: '' }
    if (found.keys.join(' ') === this.words.map(({ word }) => word).join(' ')) return
    this.words = found.keys.map((word, at) => ({ ...this.#fresh(at), word }))
    this.word = found.query
    this.tried = [found.query, ...found.keys]
  }

  /** A better query to begin with: no key, but near to one. */
  suggest(word: string): void {
    if (this.touched || this.tried.includes(word)) return
    this.word = word
    this.tried = [word, ...this.tried]
  }

  add(words: boolean): void {
    const entries = words ? this.words : this.points
    if (entries.length >= MOST) return
    const colour = COLOURS.find((one) => !entries.some((entry) => entry.colour === one)) ?? COLOURS[0]!
    const next = Math.max(0, ...entries.map((entry) => entry.number)) + 10
    const place = around((entries.length * 0.382) % 1, 0.8)
    entries.push({ point: place, word: '', number: next, colour })
    if (words) this.touched = true
  }

  remove(words: boolean, at: number): void {
    const entries = words ? this.words : this.points
    if (entries.length <= FEWEST) return
    entries.splice(at, 1)
    if (words) this.touched = true
  }
}

/** A point at so much of a turn from the top, clockwise. */
function around(turn: number, far = 1): [number, number] {
  const round = (value: number) => Math.round(value * 100) / 100
  return [round(far * Math.sin(2 * Math.PI * turn)), round(far * Math.cos(2 * Math.PI * turn))]
}

export const dictionary = new Dictionary()
