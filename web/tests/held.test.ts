import { beforeEach, describe, expect, it, vi } from 'vitest'
import { ask, exported, Refused, write } from '../src/lib/api'
import { held } from '../src/lib/held.svelte'
import type { Asked } from '../src/lib/types'
import { packed } from './packed'

const quiet = new AbortController().signal

/** What was sent, question by question. */
let sent: { path: string; weights?: string }[] = []

/** A server with weights of this name, or of those that a question names. */
function serving(there: () => string): void {
  vi.stubGlobal('fetch', (path: string, given: RequestInit) => {
    const asked = JSON.parse(String(given.body)) as { weights?: string }
    sent.push({ path, ...(asked.weights === undefined ? {} : { weights: asked.weights }) })
    const weights = asked.weights ?? there()
    if (path === 'api/write') return Promise.resolve(new Response(`${JSON.stringify({ done: true, text: '', weights })}\n`))
    return Promise.resolve(new Response(path === 'api/export' ? 'file' : packed({ weights })))
  })
}

/** Every way to ask. */
const WAYS: Record<string, (of: Partial<Asked>) => Promise<unknown>> = {
  ask: (of) => ask('near', of),
  exported: (of) => exported(of),
  write: (of) => write(of as Asked, () => {}, quiet),
}

beforeEach(() => {
  sent = []
  held.release(0)
  held.release(1)
  return () => vi.unstubAllGlobals()
})

describe('every question', () => {
  it('goes one way to the server', () => {
    const sources = import.meta.glob('../src/**/*.{ts,svelte}', { query: '?raw', import: 'default', eager: true })
    const asking = Object.entries(sources).filter(([, text]) => /\bfetch\(|XMLHttpRequest|EventSource|sendBeacon/.test(String(text)))
    expect(Object.keys(sources).length).toBeGreaterThan(80)
    expect(asking.map(([path]) => path)).toEqual(['../src/lib/api.ts'])
    expect(String(asking[0]![1]).match(/\bfetch\(/g)!.length).toBe(1)
  })

  it.each(Object.keys(WAYS))('names the weights that answered first: %s', async (way) => {
    serving(() => 'one')
    await ask('look', { text: 'a' })
    serving(() => 'two')
    await WAYS[way]!({})
    await WAYS[way]!({ model: 0, snapshot: null })
    expect(sent.slice(1).map(({ weights }) => weights)).toEqual(['one', 'one'])
    await WAYS[way]!({ model: 0, snapshot: 'step 1' })
    await WAYS[way]!({ model: 1 })
    expect(sent.slice(3).map(({ weights }) => weights)).toEqual([undefined, undefined])
  })

  it.each(['ask', 'write'])('may be the first: %s', async (way) => {
    serving(() => 'one')
    await WAYS[way]!({ model: 1, snapshot: 'step 1' })
    await WAYS[way]!({ model: 1, snapshot: 'step 1' })
    expect(sent.map(({ weights }) => weights)).toEqual([undefined, 'one'])
  })

  it('may name others itself, which changes nothing', async () => {
    serving(() => 'one')
    await ask('look', {})
    await ask('needs', { weights: 'earlier' })
    await ask('look', {})
    expect(sent.map(({ weights }) => weights)).toEqual([undefined, 'earlier', 'one'])
  })
})

describe('other weights', () => {
  it('are told, and looked at when the reader says so', async () => {
    serving(() => 'one')
    await ask('look', {})
    expect(held.outdated({ model: 0 }, 'one')).toBe(false)
    expect(held.outdated({ model: 0 }, null)).toBe(false)
    expect(held.outdated({ model: 0 }, 'two')).toBe(true)
    expect(held.outdated({ model: 1 }, 'two')).toBe(false)
    expect(held.outdated({ model: 0, snapshot: 'step 1' }, 'two')).toBe(false)
    serving(() => 'two')
    await ask('look', {})
    held.release(0, null)
    await ask('look', {})
    expect(sent.map(({ weights }) => weights)).toEqual([undefined, 'one', undefined])
    expect(held.outdated({ model: 0 }, 'two')).toBe(false)
  })

  it.each(Object.keys(WAYS))('are told when the server refuses: %s', async (way) => {
    serving(() => 'one')
    await ask('look', {})
    vi.stubGlobal('fetch', () => Promise.resolve(new Response('{"error": "newer weights are there"}', { status: 409 })))
    await expect(WAYS[way]!({})).rejects.toThrow('Newer weights are there.')
    expect(held.outdated({}, 'one')).toBe(true)
    held.release(0, null)
    expect(held.outdated({}, 'one')).toBe(false)
  })

  it.each(['ask', 'write'])('do not answer beside those that answered first: %s', async (way) => {
    const answers: (() => void)[] = []
    const replies = [packed({ weights: 'one' }), way === 'ask' ? packed({ weights: 'two' }) : '{"done": true, "weights": "two"}\n']
    vi.stubGlobal('fetch', () => {
      const reply = replies.shift()!
      return new Promise((give) => answers.push(() => give(new Response(reply))))
    })
    const [first, second] = [ask('look', {}), WAYS[way]!({})]
    answers[0]!()
    await first
    answers[1]!()
    await expect(second).rejects.toBeInstanceOf(Refused)
    expect(held.outdated({}, 'one')).toBe(true)
  })

  it('that were asked for before the reader looked again are not looked at', async () => {
    serving(() => 'one')
    await ask('look', {})
    let answer = () => {}
    vi.stubGlobal('fetch', () => new Promise((give) => (answer = () => give(new Response(packed({ weights: 'one' }))))))
    const late = ask('look', {})
    held.release(0, null)
    answer()
    await late
    serving(() => 'two')
    await ask('look', {})
    await ask('look', {})
    expect(sent.map(({ weights }) => weights)).toEqual([undefined, undefined, 'two'])
  })
})
