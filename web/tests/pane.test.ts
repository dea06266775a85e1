import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { unchanged } from '../src/lib/link'
import { Pane } from '../src/lib/pane.svelte'
import type { Look } from '../src/lib/look'
import type { Model } from '../src/lib/types'

const learning = {
  number: 0, kinds: { cross: [2, 3] }, reads: 'text', writes: 'text', positions: true, divisor: 2, masked: [], labels: null,
  ready: false, why: 'training has not validated yet; wait for it', running: true, snapshots: [], weights: null, keeps: 'best', examples: [],
} as unknown as Model
const ready: Model = { ...learning, ready: true, why: null, weights: 'one', examples: ['The fox sleeps.'] }
const seen = (weights: string) => ({ values: { weights } }) as unknown as Look

let asked: string[] = []
beforeEach(() => {
  vi.useFakeTimers()
  asked = []
  vi.stubGlobal('fetch', (path: string, given: RequestInit) => {
    asked.push(`${path} ${JSON.parse(String(given.body)).text}`)
    return Promise.resolve(new Response('{"error": "no"}', { status: 400 }))
  })
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

describe('a pane before a training', () => {
  it('waits, asks nothing, and looks by itself as soon as there are weights', async () => {
    const pane = new Pane(structuredClone(learning))
    pane.refresh(0)
    await vi.runAllTimersAsync()
    expect(pane.waits).toBe('Training has not validated yet; wait for it.')
    expect([asked, pane.problem]).toEqual([[], null])
    pane.told(structuredClone(ready))
    await vi.runAllTimersAsync()
    expect(pane.waits).toBeNull()
    expect(asked).toEqual(['api/write The fox sleeps.'])
  })

  it('keeps what was typed meanwhile', async () => {
    const pane = new Pane(structuredClone(learning))
    pane.text = 'The cow'
    pane.told(structuredClone(ready))
    await vi.runAllTimersAsync()
    expect(asked).toEqual(['api/write The cow'])
    pane.told(structuredClone(ready))
    await vi.runAllTimersAsync()
    expect(asked.length).toBe(1)
  })

  it('can ask kept weights before', async () => {
    const pane = new Pane(structuredClone({ ...learning, snapshots: ['step 1'] }))
    ;[pane.text, pane.snapshot] = ['The cow', 'step 1']
    expect(pane.waits).toBeNull()
    pane.refresh(0)
    await vi.runAllTimersAsync()
    expect(asked).toEqual(['api/write The cow'])
    pane.told(structuredClone(ready))
    await vi.runAllTimersAsync()
    expect(asked.length).toBe(1)
  })

  it('tells newer weights, and does not take them by itself', async () => {
    const pane = new Pane(structuredClone(ready))
    pane.look = seen('one')
    expect(pane.outdated).toBe(false)
    pane.told({ ...ready, weights: 'two' })
    expect(pane.outdated).toBe(true)
    await vi.runAllTimersAsync()
    expect(asked).toEqual([])
    pane.snapshot = 'step 1'
    expect(pane.outdated).toBe(false)
  })

  it('takes those of a finished model that was replaced, and waits while it is gone', async () => {
    const finished = { ...ready, running: false }
    const pane = new Pane(structuredClone(finished))
    pane.text = 'The cow'
    pane.told(structuredClone(finished))
    await vi.runAllTimersAsync()
    expect(asked).toEqual([])
    pane.told({ ...finished, weights: 'two' })
    await vi.runAllTimersAsync()
    expect(asked).toEqual(['api/write The cow'])
    pane.told({ ...finished, ready: false, why: 'this folder is not there any more', weights: null })
    expect(pane.waits).toBe('This folder is not there any more.')
    pane.told({ ...finished, weights: 'two' })
    await vi.runAllTimersAsync()
    expect([asked.length, pane.waits]).toEqual([2, null])
    // a training that ended brought its own
    pane.told({ ...ready, weights: 'three' })
    pane.told({ ...finished, weights: 'four' })
    await vi.runAllTimersAsync()
    expect(asked.length).toBe(2)
  })
})

describe('a pane that is to be otherwise', () => {
  it('asks only if it is not so yet, and keeps what is left open', async () => {
    const pane = new Pane(structuredClone(ready))
    pane.text = 'a'
    pane.become({ text: 'a', changes: unchanged() })
    pane.become({})
    await vi.runAllTimersAsync()
    expect(asked).toEqual([])
    pane.become({ changes: { ...unchanged(), off: [['cross', 1, 1], ['cross', 9, 9]] } })
    expect([pane.text, pane.changes.off]).toEqual(['a', [['cross', 1, 1]]])
    await vi.runAllTimersAsync()
    expect(asked).toEqual(['api/write a'])
    pane.become({ text: 'b', target: 'c', snapshot: 'never' })
    expect([pane.text, pane.target, pane.snapshot, pane.changes]).toEqual(['b', 'c', null, unchanged()])
  })
})

describe('a pane that asks', () => {
  it('has a forced text without the spaces around it, and keeps them while it is typed', () => {
    const pane = new Pane(structuredClone(ready))
    pane.target = ' Das Tier schläft. '
    expect(pane.asked.target).toBe('Das Tier schläft.')
    expect(pane.target).toBe(' Das Tier schläft. ')
    pane.target = null
    expect(pane.asked.target).toBeNull()
  })

  it('says that the weights are loaded, then that they read; and nothing where nothing is asked', async () => {
    const pane = new Pane(structuredClone({ ...ready, number: 7, writes: 'classes' } as Model))
    expect(pane.awaits).toBeNull()
    pane.text = 'The cow'
    pane.refresh(0)
    await vi.advanceTimersByTimeAsync(0)
    expect(pane.awaits).toBeNull()
    const answers: ((answer: Response) => void)[] = []
    vi.stubGlobal('fetch', () => new Promise((give) => answers.push(give)))
    pane.refresh(0)
    await vi.advanceTimersByTimeAsync(1)
    expect(pane.awaits).toBe('loading')
    const [head, rest] = [new TextEncoder().encode('{"arrays":{}}'), new Uint8Array(4)]
    new DataView(rest.buffer).setUint32(0, head.length, true)
    answers[0]!(new Response(new Blob([rest, head, new Uint8Array(16)])))
    await vi.runAllTimersAsync()
    await vi.waitFor(() => expect(pane.look).not.toBeNull())
    expect(pane.awaits).toBeNull()
    const second = new Pane(structuredClone({ ...ready, number: 7, writes: 'classes' } as Model))
    second.text = 'The cow'
    second.refresh(0)
    await vi.advanceTimersByTimeAsync(1)
    expect(second.awaits).toBe('reading')
  })

  it('asks what follows a look of the same weights alone, and the next look of those there are then', async () => {
    const bodies: Record<string, unknown>[] = []
    const head = new TextEncoder().encode('{"weights":"one","arrays":{}}')
    const bytes = new Uint8Array(Math.ceil((4 + head.length) / 8) * 8)
    new DataView(bytes.buffer).setUint32(0, head.length, true)
    bytes.set(head, 4)
    vi.stubGlobal('fetch', (_path: string, given: RequestInit) => {
      bodies.push(JSON.parse(String(given.body)) as Record<string, unknown>)
      return Promise.resolve(new Response(bytes.slice()))
    })
    const pane = new Pane(structuredClone({ ...ready, writes: 'classes' } as Model))
    ;[pane.text, pane.changes.mask] = ['a', false]
    pane.refresh(0)
    await vi.runAllTimersAsync()
    await vi.waitFor(() => expect(pane.look).not.toBeNull())
    expect(pane.asked.weights).toBe('one')
    expect(bodies.map(({ weights, changes }) => [weights, (changes as { mask: boolean }).mask])).toEqual([[undefined, false], ['one', true]])
    pane.again()
    await vi.runAllTimersAsync()
    await vi.waitFor(() => expect(bodies.length).toBe(4))
    expect(bodies[2]!.weights).toBeUndefined()
  })

  it('is silent before there is a text, or an image', () => {
    const pane = new Pane(structuredClone(ready))
    expect(pane.silent).toBe(true)
    pane.text = 'a'
    expect(pane.silent).toBe(false)
    const images = new Pane(structuredClone({ ...ready, reads: 'image' } as Model))
    expect(images.silent).toBe(true)
    images.image = { pixels: [0] }
    expect(images.silent).toBe(false)
  })
})

/** JSON as the server packs it, without arrays. */
function packed(values: object): ArrayBuffer {
  const head = new TextEncoder().encode(JSON.stringify({ ...values, arrays: {} }))
  const found = new ArrayBuffer(Math.ceil((4 + head.length) / 8) * 8)
  new DataView(found).setUint32(0, head.length, true)
  new Uint8Array(found).set(head, 4)
  return found
}

describe('a language model that is changed', () => {
  it('reads what it went on with before, without the mark at its end', async () => {
    const pieces = ['▁sat', '.', '</s>']
    const looks: unknown[] = []
    vi.stubGlobal('fetch', (path: string, given: RequestInit) => {
      const { changes, branch } = JSON.parse(String(given.body)) as { changes: { positions: boolean }; branch: number[] | null }
      if (path === 'api/look') {
        looks.push([changes.positions, branch])
        return Promise.resolve(new Response(packed({ source: ['</s>', '▁The', '▁cat', ...(branch ?? [])], branch: null })))
      }
      const wrote = (changes.positions ? pieces : ['</s>']).map((piece) => ({ id: pieces.indexOf(piece) + 7, piece, probability: 0.5, others: [] }))
      return Promise.resolve(new Response([...wrote, { done: true, text: '' }].map((one) => `${JSON.stringify(one)}\n`).join('')))
    })
    const pane = new Pane(structuredClone({ ...ready, writes: 'continuation', max_tokens: 99 }))
    pane.text = 'The cat'
    pane.changes = { ...unchanged(), positions: false }
    pane.refresh(0)
    await vi.runAllTimersAsync()
    await vi.waitFor(() => expect([pane.busy, pane.problem, pane.forced === null]).toEqual([false, null, false]))
    expect(looks).toEqual([[false, null], [true, [7, 8]], [false, [7, 8]]])
    expect(pane.gone!.map((some) => some.map(({ piece }) => piece))).toEqual([['▁sat', '.'], []])
    // no more is forced than it can read
    looks.length = 0
    pane.model.max_tokens = 4
    pane.refresh(0)
    await vi.runAllTimersAsync()
    await vi.waitFor(() => expect(looks).toEqual([[false, null], [true, [7]], [false, [7]]]))
  })
})
