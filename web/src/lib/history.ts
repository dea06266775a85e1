/** The page in the browser's address and history: Back leads to the view before. */

import { type Place, written } from './link'

/** Kept with an entry of the history: also what is too long for an address, or was drawn. */
interface Entry {
  regard: Place
}

const WAIT = 200

export class Entries {
  #timer: ReturnType<typeof setTimeout> | undefined
  #last: Place | null = null
  /** What the present entry does not say yet. */
  #waiting: Place | null = null
  /** A text is being typed: it has its step already. */
  #typing = false

  constructor(readonly history: Pick<History, 'pushState' | 'replaceState'>) {}

  /**
   * What is shown now. Another view, model, use of attention, text or step of the walk is a step of its own, a text that is being typed one in all;
   * browsers refuse an address that changes with every key.
   */
  at(place: Place): void {
    const last = this.#last
    const other = last !== null && text(last) !== '' && text(place) !== text(last)
    if (last && (step(place) !== step(last) || (other && !this.#typing))) {
      this.#typing = other
      this.#write()
      this.#enter('pushState', place)
    } else {
      clearTimeout(this.#timer)
      this.#waiting = place
      this.#timer = setTimeout(() => this.#write(), WAIT)
    }
    this.#last = place
  }

  /** The text is as it was meant: the next one is another. */
  settled(): void {
    this.#typing = false
  }

  /** The browser went to another entry, which shows this: no step of the reader's. */
  came(place: Place): void {
    clearTimeout(this.#timer)
    this.#waiting = null
    this.#typing = false
    this.#last = place
  }

  #write(): void {
    clearTimeout(this.#timer)
    if (this.#waiting) this.#enter('replaceState', this.#waiting)
    this.#waiting = null
  }

  #enter(how: 'pushState' | 'replaceState', place: Place): void {
    const entry: Entry = { regard: place }
    try {
      this.history[how](entry, '', written(place))
    } catch {
      // more than the browser keeps: then the address has to do
      this.history[how](null, '', written(place))
    }
  }
}

/** What an entry keeps; null: it was made by an address alone. */
export function kept(state: unknown): Place | null {
  return typeof state === 'object' && state !== null && 'regard' in state ? (state as Entry).regard : null
}

function step({ view, kind, asked, step }: Place): string {
  return JSON.stringify([view, kind, asked[0]?.model, asked[0]?.snapshot, view === 'walk' ? step : null])
}

function text({ asked }: Place): string {
  const { text, target } = asked[0]!
  return text && JSON.stringify([text, target])
}
