import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { held } from '../src/lib/held.svelte'
import { unchanged } from '../src/lib/link'
import { Pane } from '../src/lib/pane.svelte'
import type { Model } from '../src/lib/types'
import { packed } from './packed'

const learning = {
  number: 0, kinds: { cross: [2, 3] }, reads: 'text', writes: 'text', positions: true, divisor: 2, masked: [], labels: null,
  ready: false, why: 'training has not validated yet; wait for it', running: true, snapshots: [], weights: null, keeps: 'best', examples: [],
} as unknown as Model
const ready: Model = { ...learning, ready: true, why: null, weights: 'one', examples: ['The fox sleeps.'] }
/** Weights of this name have answered. */
const seen = (name: string) => held.answered({ model: 0 }, name)

let asked: string[] = []
beforeEach(() => {
  vi.useFakeTimers()
  asked = []
  held.release(0)
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

  it('translates into another language, and forgets what was forced', async () => {
    const pane = new Pane(structuredClone({ ...ready, languages: [[], ['de', 'fr']] as [string[], string[]] }))
    ;[pane.text, pane.target] = ['The cow', 'Die Kuh']
    pane.translate(1, 'fr')
    expect([pane.asked.between, pane.asked.target]).toEqual([[null, 'fr'], null])
    await vi.runAllTimersAsync()
    expect(asked).toEqual(['api/write The cow'])
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
    seen('one')
    expect(pane.outdated).toBe(false)
    pane.told({ ...ready, weights: 'two' })
    expect(pane.outdated).toBe(true)
    await vi.runAllTimersAsync()
    expect(asked).toEqual([])
    pane.snapshot = 'step 1'
    expect(pane.outdated).toBe(false)
  })

  it('does not take those of a finished model that was replaced either, and waits while it is gone', async () => {
    const finished = { ...ready, running: false }
    const pane = new Pane(structuredClone(finished))
    pane.text = 'The cow'
    seen('one')
    pane.told(structuredClone(finished))
    pane.told({ ...finished, weights: 'two' })
    await vi.runAllTimersAsync()
    expect([asked, pane.outdated]).toEqual([[], true])
    pane.again()
    expect(pane.outdated).toBe(false)
    await vi.runAllTimersAsync()
    expect(asked).toEqual(['api/write The cow'])
    pane.told({ ...finished, ready: false, why: 'this folder is not there any more', weights: null })
    expect(pane.waits).toBe('This folder is not there any more.')
    pane.told({ ...finished, weights: 'two' })
    await vi.runAllTimersAsync()
    expect([asked.length, pane.waits]).toEqual([2, null])
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

  it('asks all of the weights that answered first, whatever is changed, until the reader looks again', async () => {
    const bodies: { weights?: string; mask: boolean }[] = []
    let there = 'one'
    vi.stubGlobal('fetch', (_path: string, given: RequestInit) => {
      const { weights, changes } = JSON.parse(String(given.body)) as { weights?: string; changes: { mask: boolean } }
      bodies.push({ ...(weights === undefined ? {} : { weights }), mask: changes.mask })
      return Promise.resolve(new Response(packed({ weights: weights ?? there })))
    })
    const pane = new Pane(structuredClone({ ...ready, writes: 'classes' } as Model))
    pane.text = 'a'
    pane.refresh(0)
    await vi.runAllTimersAsync()
    await vi.waitFor(() => expect(pane.look).not.toBeNull())
    expect(pane.asked.weights).toBe('one')
    there = 'two'
    pane.told({ ...pane.model, weights: 'two' })
    pane.changes.mask = false // a head that is switched off is no other
    pane.refresh(0)
    await vi.runAllTimersAsync()
    await vi.waitFor(() => expect(pane.before).not.toBeNull())
    expect(bodies).toEqual([{ mask: true }, { weights: 'one', mask: false }, { weights: 'one', mask: true }])
    expect([pane.look!.values.weights, pane.before!.values.weights, pane.outdated]).toEqual(['one', 'one', true])
    pane.again()
    await vi.runAllTimersAsync()
    await vi.waitFor(() => expect(bodies.length).toBe(5))
    expect(bodies.slice(3)).toEqual([{ mask: false }, { weights: 'two', mask: true }])
    await vi.waitFor(() => expect(pane.outdated).toBe(false))
  })

  it('tells that the weights are gone, and asks for others only when the reader looks again', async () => {
    const pane = new Pane(structuredClone({ ...ready, writes: 'classes' } as Model))
    pane.text = 'a'
    seen('one')
    vi.stubGlobal('fetch', () => Promise.resolve(new Response('{"error": "newer weights are there"}', { status: 409 })))
    pane.refresh(0)
    await vi.runAllTimersAsync()
    await vi.waitFor(() => expect(pane.problem).toBe('Newer weights are there.'))
    expect([pane.look, pane.outdated]).toEqual([null, true])
    vi.stubGlobal('fetch', () => Promise.resolve(new Response(packed({ weights: 'two' }))))
    pane.told({ ...pane.model, weights: 'two' })
    pane.again()
    await vi.runAllTimersAsync()
    await vi.waitFor(() => expect([pane.problem, pane.look?.values.weights, pane.outdated]).toEqual([null, 'two', false]))
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
    // and what it went on with is told though there is no room for it
    pane.model.max_tokens = 3
    pane.refresh(0)
    await vi.runAllTimersAsync()
    await vi.waitFor(() => expect(pane.busy).toBe(false))
    expect(pane.gone!.map((some) => some.length)).toEqual([2, 0])
  })
})

describe('a text that is longer than the model reads', () => {
  const part = (number: number, count = 5) => ({ text: `part ${number}`, number, count, first: 1, last: 9, total: 40 })
  let bodies: Record<string, unknown>[] = []
  beforeEach(() => {
    bodies = []
    vi.stubGlobal('fetch', (_path: string, given: RequestInit) => {
      const body = JSON.parse(String(given.body)) as { text: string; window: number | null; opening?: string }
      bodies.push(body)
      const window = body.text === 'a long text' ? part(Math.min(body.window ?? 1, 5)) : null
      return Promise.resolve(new Response(packed({ weights: 'one', window, opening: body.opening ? { layer: 1, head: 2, query: 3 } : null })))
    })
  })
  async function looked(pane: Pane): Promise<void> {
    await vi.runAllTimersAsync()
    await vi.waitFor(() => expect([pane.busy, pane.problem]).toEqual([false, null]))
  }
  const reader = () => new Pane(structuredClone({ ...ready, writes: 'classes' } as Model))

  it('is looked at by parts; what follows is asked of the part alone', async () => {
    const pane = reader()
    pane.text = 'a long text'
    pane.refresh(0)
    await looked(pane)
    expect([pane.part, pane.look!.values.window!.number]).toEqual([null, 1])
    expect(pane.asked).toMatchObject({ text: 'part 1', window: null, weights: 'one' })
    expect(pane.entire).toMatchObject({ text: 'a long text', window: 1, weights: 'one' })
    ;[pane.target, pane.changes.mask] = ['of the first', false]
    pane.move(4)
    await looked(pane)
    expect([pane.part, pane.target, pane.asked.text]).toEqual([4, null, 'part 4'])
    expect(bodies.slice(1).map(({ text, window }) => [text, window])).toEqual([['a long text', 4], ['part 4', null]])
  })

  it('has no part where all of it is read, nor one that is not there', async () => {
    const pane = reader()
    ;[pane.text, pane.part] = ['a long text', 9]
    pane.refresh(0)
    await looked(pane)
    expect(pane.part).toBe(5)
    pane.text = 'short'
    pane.refresh(0)
    await looked(pane)
    expect([pane.part, pane.asked.text, pane.entire.window]).toEqual([null, 'short', null])
  })

  it('is asked for the head to begin with once, and only where somebody wants to begin', async () => {
    const pane = reader()
    pane.text = 'short'
    pane.refresh(0)
    pane.begin('encoder')
    await looked(pane)
    expect([pane.begins, pane.look!.values.opening]).toEqual([null, { layer: 1, head: 2, query: 3 }])
    pane.refresh(0)
    await looked(pane)
    expect(bodies.map(({ opening }) => opening)).toEqual(['encoder', undefined])
    pane.begin('cross')
    await looked(pane)
    expect(bodies.at(-1)!.opening).toBe('cross')
    pane.live = false
    pane.begin('decoder')
    expect(pane.begins).toBeNull()
  })
})
