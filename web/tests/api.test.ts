import { afterEach, describe, expect, it, vi } from 'vitest'
import { ask, onGone, Refused, sentence, write } from '../src/lib/api'
import type { Asked } from '../src/lib/types'

const GONE = 'The server does not answer. Is “regard explore” still running?'
const asked = { model: 0, text: 'a' } as Asked
const quiet = new AbortController().signal

function answering(...answers: (Response | Error)[]): void {
  vi.stubGlobal('fetch', () => {
    const next = answers.shift()!
    return next instanceof Error ? Promise.reject(next) : Promise.resolve(next)
  })
}

/** Some of a text, and then the line is cut. */
function cut(text: string): Response {
  const body = new ReadableStream({
    start(stream) {
      stream.enqueue(new TextEncoder().encode(text))
    },
    pull(stream) {
      stream.error(new TypeError('network error'))
    },
  })
  return new Response(body)
}

afterEach(() => vi.unstubAllGlobals())

describe('what the server says', () => {
  it('is a sentence', () => {
    expect(sentence('there is no head 99')).toBe('There is no head 99.')
    expect(sentence('Is it there?')).toBe('Is it there?')
    expect(sentence("'x' is no label")).toBe("'x' is no label.")
  })

  it('is told as it is, with its place', async () => {
    answering(new Response('{"error": "the text is empty", "where": "text"}', { status: 400 }))
    await expect(ask('look', asked)).rejects.toMatchObject({ message: 'The text is empty.', where: 'text' })
    answering(new Response('<html>', { status: 502 }))
    await expect(ask('look', asked)).rejects.toThrow('The server answers with an error (502).')
  })
})

describe('a server that leaves', () => {
  it('before it answers', async () => {
    answering(new TypeError('Failed to fetch'))
    await expect(ask('look', asked)).rejects.toEqual(new Refused(GONE))
  })

  it('in the middle of an answer', async () => {
    answering(cut('{'))
    await expect(ask('look', asked)).rejects.toEqual(new Refused(GONE))
  })

  it('while a text is written: what was written is there', async () => {
    const told: string[] = []
    answering(cut('{"piece": "The"}\n{"piece": " f'))
    await expect(write(asked, ({ piece }) => told.push(piece), quiet)).rejects.toEqual(new Refused(GONE))
    expect(told).toEqual(['The'])
    answering(new Response('{"piece": "The"}\n'))
    await expect(write(asked, () => {}, quiet)).rejects.toEqual(new Refused(GONE))
  })

  it('is told to whoever waits for it', async () => {
    const gone = vi.fn()
    onGone(gone)
    answering(new TypeError('Failed to fetch'), new Response('{"error": "no"}', { status: 400 }))
    await expect(ask('look', asked)).rejects.toThrow(GONE)
    await expect(ask('look', asked)).rejects.toThrow('No.')
    expect(gone).toHaveBeenCalledOnce()
  })

  it('is not the reader, who left', async () => {
    const left = new DOMException('', 'AbortError')
    answering(left)
    await expect(ask('look', asked)).rejects.toBe(left)
  })
})
