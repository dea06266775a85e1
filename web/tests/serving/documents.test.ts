import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Documents, size, state } from '../../serving/lib/documents.svelte'
import type { Job } from '../../serving/lib/types'

const JOB: Job = { status: 'translating', name: 'a.de.txt', done: 2, segments: 9, characters: 90, seconds: null, error: null, report: [] }

let asked: string[]
let answers: (Job | number)[]
let stored: Record<string, string>

beforeEach(() => {
  vi.useFakeTimers()
  asked = []
  stored = {}
  vi.stubGlobal('sessionStorage', { getItem: (name: string) => stored[name] ?? null, setItem: (name: string, value: string) => (stored[name] = value) })
  vi.stubGlobal('fetch', async (path: string, { method = 'GET', headers }: { method?: string; headers: Headers }) => {
    asked.push(`${method} ${path} ${headers.get('document-secret') ?? ''}`.trim())
    if (method === 'POST') return Response.json({ id: '7', secret: 's' })
    if (method === 'DELETE') return new Response(null, { status: 204 })
    const next = answers.shift()!
    return typeof next === 'number' ? Response.json({ error: 'wait' }, { status: next, headers: { 'retry-after': '3' } }) : Response.json(next)
  })
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

describe('documents', () => {
  it('are asked for until they are done, also after a refusal, and by a page that is opened again', async () => {
    answers = [JOB, 503, JOB, { ...JOB, status: 'done', done: 9 }]
    const documents = new Documents()
    documents.add([new File(['abc'], 'a.txt')], 3, null, 'de', [])
    await vi.advanceTimersByTimeAsync(0)
    expect(asked).toEqual(['POST v1/documents', 'GET v1/documents/7 s'])
    await vi.advanceTimersByTimeAsync(1000)
    expect(documents.all[0]!.problem).toBe('Wait.')
    await vi.advanceTimersByTimeAsync(2999)
    expect(asked).toHaveLength(3)
    await vi.advanceTimersByTimeAsync(1)
    expect([documents.all[0]!.problem, documents.all[0]!.job]).toEqual([null, JOB])
    await vi.advanceTimersByTimeAsync(60_000)
    expect([asked.length, documents.all[0]!.job!.status]).toEqual([5, 'done'])

    answers = [{ ...JOB, status: 'done' }]
    const again = new Documents()
    again.again()
    await vi.advanceTimersByTimeAsync(0)
    expect(again.all.map(({ file, job }) => [file, job!.status])).toEqual([['a.txt', 'done']])
  })

  it('that are removed are asked for no more, and forgotten on both sides', async () => {
    answers = [JOB]
    const documents = new Documents()
    documents.add([new File(['abc'], 'a.txt'), new File(['abcd'], 'b.txt')], 3, 'en', 'de', [])
    await vi.advanceTimersByTimeAsync(0)
    expect(documents.all.map(({ problem }) => problem)).toEqual([null, 'This is larger than the 0 kB that the server takes.'])
    for (const one of documents.all) documents.remove(one)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(asked).toEqual(['POST v1/documents', 'GET v1/documents/7 s', 'DELETE v1/documents/7 s'])
    expect([documents.all, Object.values(stored)]).toEqual([[], ['[]']])
  })

  it('say what becomes of them', () => {
    expect(state({ ...JOB, status: 'queued' })).toBe('Waits for its turn')
    expect(state({ ...JOB, segments: 0 })).toBe('Is read')
    expect([0.2, 89, 90].map((seconds) => state({ ...JOB, seconds }))).toEqual([
      '2 of 9 segments, about 1 s more',
      '2 of 9 segments, about 89 s more',
      '2 of 9 segments, about 2 min more',
    ])
    expect(state({ ...JOB, status: 'error', error: 'is damaged' })).toBe('Is damaged.')
    expect([999_999, 33_554_432].map(size)).toEqual(['999 kB', '33 MB'])
  })
})
