/** Asking the server. What is wrong comes back as one sentence, and is shown as it is. */

import { aborted, sentence } from '../../src/lib/errors'
import { key } from './key.svelte'
import type { Asked, Guess, Job, JobName, Language, SentTranslation, SentWord, Settings, Term } from './types'

/** Seconds after which a server that did not answer is asked again. */
const AGAIN = 5

export class Refused extends Error {
  /**
   * @param again seconds after which it may succeed; null: it will not.
   */
  constructor(
    message: string,
    readonly again: number | null = null,
  ) {
    super(sentence(message))
  }
}

async function fetched(path: string, given: RequestInit = {}): Promise<Response> {
  const headers = new Headers(given.headers)
  if (key.value) headers.set('authorization', `Bearer ${key.value}`)
  let answer: Response
  try {
    answer = await fetch(`v1/${path}`, { ...given, headers })
  } catch (error) {
    if (aborted(error)) throw error
    throw new Refused('the server does not answer', AGAIN)
  }
  if (answer.ok) return answer
  const told = (await answer.json().catch(() => null)) as { error?: string } | null
  if (answer.status === 401 || answer.status === 403) key.refused = true
  const after = Number(answer.headers.get('retry-after'))
  const again = answer.status === 429 || answer.status >= 500 ? after || (answer.status === 500 ? null : AGAIN) : null
  throw new Refused(told?.error ?? UNTOLD[answer.status] ?? `the server answers with an error (${answer.status})`, again)
}

/** Where something in between answers, which has no sentence. */
const UNTOLD: Record<number, string> = {
  401: 'this server needs a key',
  403: 'this is no key of this server',
  413: 'this is more than the server takes at once',
  429: 'there are too many requests at the moment',
  502: 'the server does not answer',
  503: 'the server does not answer at the moment',
  504: 'the server took too long',
}

async function asked<T>(path: string, body: object | null, signal?: AbortSignal): Promise<T> {
  const given: RequestInit = signal ? { signal } : {}
  if (body) Object.assign(given, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  const answer = await fetched(path, given)
  try {
    return (await answer.json()) as T
  } catch (error) {
    if (aborted(error)) throw error
    throw new Refused('the server does not answer', AGAIN)
  }
}

export const settings = () => asked<Settings>('settings', null)

/** A key that is none is refused. */
export const checkKey = () => asked<object>('usage', null)

export const languages = async () => (await asked<{ languages: Language[] }>('languages', null)).languages

export async function translate(question: Asked, signal: AbortSignal): Promise<SentTranslation[]> {
  return (await asked<{ translations: SentTranslation[] }>('translate', question, signal)).translations
}

/** The languages that a text may be in, best first. */
export async function detect(text: string, signal: AbortSignal): Promise<Guess[]> {
  return (await asked<{ guesses: Guess[] }>('detect', { text }, signal)).guesses
}

export async function words(
  question: { text: string; source: string; target: string; n: number; translation: string },
  signal: AbortSignal,
): Promise<SentWord[]> {
  return (await asked<{ words: SentWord[] }>('words', question, signal)).words
}

export async function sendDocument(file: File, source: string | null, target: string, terms: Term[]): Promise<JobName> {
  const body = new FormData()
  body.set('file', file)
  body.set('target', target)
  if (source) body.set('source', source)
  if (terms.length) body.set('terms', JSON.stringify(terms))
  return (await (await fetched('documents', { method: 'POST', body })).json()) as JobName
}

const secret = (name: JobName) => ({ headers: { 'document-secret': name.secret } })

export const job = async (name: JobName) => (await (await fetched(`documents/${name.id}`, secret(name))).json()) as Job

export const result = async (name: JobName) => (await fetched(`documents/${name.id}/result`, secret(name))).blob()

export const remove = (name: JobName) => fetched(`documents/${name.id}`, { method: 'DELETE', ...secret(name) })
