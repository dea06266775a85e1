/** The weights that are looked at: every question to the server names them, so that no answer is of others. */

import { untrack } from 'svelte'
import { SvelteMap } from 'svelte/reactivity'

/** What of a question says which weights it is about; what it leaves out is as the server takes it. */
export interface Of {
  model?: number
  /** Weights that a training kept; null: those of the folder. */
  snapshot?: string | null
  /** The name of those that are meant; undefined: those that are looked at, or the first that answer. */
  weights?: string | undefined
}

interface One {
  name: string | null
  /** The server has them no more. */
  gone: boolean
}

const NONE: One = { name: null, gone: false }

class Held {
  #all = new SvelteMap<string, One>()

  #get({ model, snapshot }: Of): One {
    return this.#all.get(key(model, snapshot)) ?? NONE
  }

  /** The question with the name of the weights that it is about; whoever asks does not ask again because that changes. */
  named<T extends Of>(asked: T): T {
    return { ...asked, weights: asked.weights ?? untrack(() => this.#get(asked).name) ?? undefined }
  }

  /** Weights of this name have answered: those that answer first are looked at from then on. Whether it is these. */
  answered(question: Of, name: string | undefined): boolean {
    if (name === undefined || question.weights !== undefined) return true
    const { name: known } = untrack(() => this.#get(question))
    if (known === null) this.#all.set(key(question.model, question.snapshot), { name, gone: false })
    else if (known !== name) this.lost(question)
    return known === null || known === name
  }

  /** The server refused to answer with others. */
  lost(question: Of): void {
    const { name } = untrack(() => this.#get(question))
    if (question.weights === undefined || question.weights === name) this.#all.set(key(question.model, question.snapshot), { name, gone: true })
  }

  /** The reader looks again, at whatever is there now; without a moment of the training: at all of a model. */
  release(model: number, snapshot?: string | null): void {
    for (const name of [...this.#all.keys()]) {
      const [number, moment] = JSON.parse(name) as [number, string | null]
      if (number === model && (snapshot === undefined || snapshot === moment)) this.#all.delete(name)
    }
  }

  /** Whether there are others by now than are looked at. */
  outdated(of: Of, now: string | null): boolean {
    const { name, gone } = this.#get(of)
    return gone || (!of.snapshot && name !== null && now !== null && name !== now)
  }
}

function key(model = 0, snapshot: string | null = null): string {
  return JSON.stringify([model, snapshot])
}

export const held = new Held()
