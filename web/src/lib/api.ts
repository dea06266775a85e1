/** Asking the server. One sentence comes back where something is wrong, and is shown as it is. */

import { aborted, sentence } from './errors'
import { held, type Of } from './held.svelte'
import { type Payload, unpacked } from './payload'
import { fileName } from './saved'
import type { Asked, State, WrittenToken } from './types'

export { aborted, sentence }

export class Refused extends Error {
  constructor(
    message: string,
    readonly where: string | null = null,
    readonly status: number | null = null,
  ) {
    super(sentence(message))
  }
}

export const REPLACED = 'newer weights are there than those that were looked at; look again'
export const GONE = 'The server does not answer. Is “regard explore” still running?'

export const SAVED = 'This saved page has answers to its own sentences only. For anything else install Regard and run “regard explore”.'

/** Of a saved page the questions that have an answer; null: there is a server. */
let answered: Set<string> | null = null

let missed = () => {}

/** What is done whenever the server does not answer. */
export function onGone(call: () => void): void {
  missed = call
}

/** What comes from the server, which may leave at any moment. */
async function there<T>(coming: Promise<T>): Promise<T> {
  try {
    return await coming
  } catch (error) {
    if (aborted(error)) throw error
    throw gone()
  }
}

async function fetched(path: string, asked: Of | null, signal?: AbortSignal): Promise<Response> {
  const given: RequestInit = signal ? { signal } : {}
  if (asked && answered) {
    const name = fileName(path.replace('api/', ''), asked)
    if (!answered.has(name)) throw new Refused(SAVED)
    path = `api/${name}.bin`
  } else if (asked) Object.assign(given, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(asked) })
  const answer = await there(fetch(path, given))
  if (answer.ok) return answer
  const told = (await answer.json().catch(() => null)) as { error?: string; where?: string | null } | null
  throw new Refused(told?.error ?? `The server answers with an error (${answer.status}).`, told?.where ?? null, answer.status)
}

/** An answer, and the question as it was sent: every one names the weights that are looked at. */
async function posted(name: string, asked: Of, signal?: AbortSignal): Promise<[Response, Of]> {
  const question = held.named(asked)
  try {
    return [await fetched(`api/${name}`, question, signal), question]
  } catch (error) {
    if (error instanceof Refused && error.status === 409) held.lost(question)
    throw error
  }
}

/** An answer of other weights than are looked at is none. */
function refuseOthers(question: Of, weights: string | undefined): void {
  if (!held.answered(question, weights)) throw new Refused(REPLACED)
}

export async function state(signal?: AbortSignal): Promise<State> {
  const found = (await there((await fetched('api/state', null, signal)).json())) as State
  answered = found.saved ? new Set(found.saved) : null
  return found
}

export async function ask<T>(name: string, asked: object, signal?: AbortSignal): Promise<Payload<T>> {
  const [answer, question] = await posted(name, asked, signal)
  const payload = unpacked<T>(await there(answer.arrayBuffer()))
  refuseOthers(question, (payload.values as Of).weights)
  return payload
}

export async function course<T>(model: number, points: number, signal?: AbortSignal): Promise<Payload<T>> {
  const answer = await (answered ? fetched('api/course', { model, points } as Of, signal) : fetched(`api/course?model=${model}&points=${points}`, null, signal))
  return unpacked<T>(await there(answer.arrayBuffer()))
}

/** A file made of what is seen, ready to be saved. */
export async function exported(asked: object): Promise<{ blob: Blob; name: string }> {
  const [answer] = await posted('export', asked)
  const name = /filename\*=UTF-8''([^;]+)/.exec(answer.headers.get('content-disposition') ?? '')?.[1]
  return { blob: await there(answer.blob()), name: decodeURIComponent(name ?? 'regard') }
}

/** The model's own writing, each token as soon as it is decided; returns the whole text. */
export async function write(
  asked: Asked & { temperature?: number; seed?: number; most?: number },
  told: (token: WrittenToken) => void,
  signal: AbortSignal,
): Promise<string> {
  const [answer, question] = await posted('write', asked, signal)
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { value, done } = await there(reader.read())
    rest += value ?? ''
    const lines = rest.split('\n')
    rest = lines.pop()!
    for (const line of lines) {
      if (!line) continue
      const one = JSON.parse(line) as WrittenToken & { done?: boolean; text?: string; weights?: string; error?: string }
      if (one.error) throw new Refused(one.error)
      if (one.done) {
        refuseOthers(question, one.weights)
        return one.text ?? ''
      }
      told(one)
    }
    if (done) throw gone()
  }
}

function gone(): Refused {
  missed()
  return new Refused(GONE)
}
