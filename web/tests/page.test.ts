import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { held } from '../src/lib/held.svelte'
import { read } from '../src/lib/link'
import { page } from '../src/lib/page.svelte'
import type { Asked, Model, State } from '../src/lib/types'
import { packed } from './packed'

const model = {
  number: 0, name: 'a', folder: 'a', task: 'classification', family: 'bert', kinds: { encoder: [2, 3] }, reads: 'text', writes: 'classes', positions: true, divisor: 2, masked: [],
  labels: ['a', 'b'], ready: true, why: null, running: true, snapshots: ['step 1'], weights: 'one', keeps: 'best', examples: ['The fox sleeps.'], max_tokens: 64,
} as unknown as Model
const state = (...models: Partial<Model>[]): State => ({ version: '1', models: models.map((one, number) => ({ ...structuredClone(model), number, ...one })) })

/** Begin with a pane for each of these. */
const open = (given: State, ...asked: Partial<Asked>[]) => page.open(given, { asked: asked as Asked[] })

interface Sent {
  asked: { model: number; snapshot: string | null; weights?: string; text: string }
  give: () => void
}
let there = 'one'
let waiting: Sent[] = []

/** Let the server answer all that it was asked. */
async function answered(): Promise<void> {
  await vi.runAllTimersAsync()
  while (waiting.length) {
    waiting.splice(0).forEach(({ give }) => give())
    for (let turn = 0; turn < 50; turn++) await Promise.resolve()
    await vi.runAllTimersAsync()
  }
}
const seenText = (text: string) => ({
  kinds: { encoder: { queries: 'source', keys: 'source', layers: 2, heads: 3 } },
  source: text.split(' ').map((word) => ({ text: word, start: 0, end: 0, special: false })),
})
const seen = () => page.panes.map(({ look }) => look?.values.weights ?? null)

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('location', { hash: '' })
  held.release(0)
  held.release(1)
  ;[there, waiting] = ['one', []]
  vi.stubGlobal('fetch', (_: string, { body, signal }: RequestInit) => {
    const asked = JSON.parse(String(body)) as Sent['asked']
    return new Promise((done, left) => {
      signal?.addEventListener('abort', () => left(new DOMException('', 'AbortError')))
      waiting.push({ asked, give: () => done(new Response(packed({ weights: asked.weights ?? there, ...seenText(asked.text) }))) })
    })
  })
})
afterEach(() => {
  page.panes.forEach((pane) => pane.stop())
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

describe('a shipped model', () => {
  it('stands in for a training without weights until that has some', async () => {
    const begun = { name: 'demo', ready: false, why: 'not yet' }
    page.open(state(begun, { shipped: true, running: false }), { asked: [] }, true)
    expect([page.first.model.number, page.standsIn]).toEqual([1, true])
    page.told(state(begun, { shipped: true, running: false }))
    expect([page.first.model.number, page.standsIn]).toEqual([1, true])
    page.told(state({ name: 'demo' }, { shipped: true, running: false }))
    expect([page.first.model.number, page.standsIn]).toEqual([0, false])
    await answered()
  })
})

describe('two panes before one training', () => {
  it('look again together, also one that is still asking', async () => {
    open(state({}), { text: 'a' })
    await answered()
    page.panes[1] = page.pane({ text: 'b' }, 1)
    await vi.runAllTimersAsync()
    expect(waiting.map(({ asked }) => asked.weights)).toEqual(['one'])
    there = 'two'
    page.told(state({ weights: 'two' }))
    expect([page.outdated.length, seen()]).toEqual([1, ['one', null]])
    waiting = []
    page.again()
    await vi.runAllTimersAsync()
    expect(waiting.map(({ asked }) => asked.weights)).toEqual([undefined, undefined])
    await answered()
    expect([seen(), page.outdated]).toEqual([['two', 'two'], []])
  })

  it('are never of two kinds of weights', async () => {
    open(state({}), { text: 'a' }, { text: 'b' })
    await answered()
    expect(seen()).toEqual(['one', 'one'])
    there = 'two'
    page.told(state({ weights: 'two' }))
    page.again()
    expect(seen()).toEqual(['one', null])
    await vi.runAllTimersAsync()
    for (const { give } of waiting.splice(0)) {
      give()
      for (let turn = 0; turn < 50; turn++) await Promise.resolve()
      expect(new Set(seen().filter((one) => one !== null)).size).toBe(1)
    }
    expect(seen()).toEqual(['two', 'two'])
  })

  it('leave those alone that are of another model, or of another moment', async () => {
    open(state({}, { weights: 'one' }), { text: 'a' }, { text: 'a', snapshot: 'step 1' })
    await answered()
    page.told(state({ weights: 'two' }, {}))
    page.again()
    await vi.runAllTimersAsync()
    expect(waiting.map(({ asked: { snapshot, weights } }) => [snapshot, weights])).toEqual([[null, undefined]])
  })

  it('ask for what is there where a folder has another model now', async () => {
    open(state({}), { text: 'a' })
    await answered()
    there = 'two'
    page.told(state({ family: 'rnn-encoder', weights: 'two' }))
    await answered()
    expect(seen()).toEqual(['two'])
  })
})

describe('the walk of a demonstration', () => {
  const walk = { fits: true } as NonNullable<Model['walk']>
  const at = (hash: string) => read(hash)
  it('comes first where nothing else was asked for', () => {
    page.open(state({ walk }), at(''), true)
    expect([page.view, page.step]).toEqual(['walk', 1])
    expect(page.beginning).toContain('view=walk')
    page.open(state({}), at(''), true)
    expect(page.view).toBe('heads')
    expect(page.beginning).toContain('view=heads')
    page.open(state({ walk }), at('#view=sheet'), false)
    expect(page.view).toBe('sheet')
    page.open(state({ walk }), at('#view=walk&step=3'), false)
    expect([page.view, page.step]).toEqual(['walk', 3])
  })

  it('comes as soon as the training of a demonstration has begun, where nothing else was asked for', () => {
    const classic = { pronoun: 'it', sentences: [] }
    const known = { family: '', stacks: [], sides: [] }
    const preparing = { ...known, kinds: {}, ready: false, weights: null, why: 'it begins', classic: null }
    for (const [hash, view] of [['', 'walk'], ['#view=sheet', 'sheet']] as const) {
      page.open(state(preparing), at(hash), !hash)
      expect(page.view).toBe('dictionary')
      page.told(state({ ...known, ready: false, weights: null, classic }))
      expect(page.view).toBe(view)
      page.told(state({ ...known, classic, walk }))
      expect(page.view).toBe(view)
    }
    page.open(state(preparing), at(''), true)
    page.show('dictionary')
    page.told(state({ ...known, classic }))
    expect(page.view).toBe('dictionary')
  })

  it('keeps which of its sentences stands above', () => {
    page.open(state({ walk }), at('#view=walk&exchanged=1'))
    expect([page.exchanged, page.place.exchanged]).toEqual([true, true])
    page.go(at('#view=walk'))
    expect(page.exchanged).toBe(false)
  })

  it('keeps its step while another view is shown', () => {
    page.open(state({ walk }), at('#view=walk&step=4'))
    page.go({ ...at('#view=heads&layer=1'), step: 4 })
    expect([page.view, page.step, page.place.step]).toEqual(['heads', 4, 4])
    page.show('walk')
    expect(page.step).toBe(4)
    page.go(at('#view=walk'))
    expect(page.step).toBe(1)
  })

  it('gives way where it is gone, and is not what a model without one is shown by', () => {
    page.open(state({ walk }), at(''), true)
    page.told(state({ walk: null }))
    expect(page.view).toBe('heads')
    page.open(state({}), at('#view=walk'))
    expect(page.view).toBe('heads')
  })
})

describe('the kept word', () => {
  const say = async (text: string) => {
    Object.assign(page.first, { text })
    page.first.refresh(0)
    await answered()
    return page.query
  }
  it('is followed from text to text, and dropped where it is gone', async () => {
    open(state({}), { text: 'the cat sees the dog' })
    await answered()
    page.query = 4
    expect(await say('the small cat sees the dog')).toBe(5)
    expect(await say('the dog')).toBe(1)
    expect(await say('the cat')).toBeNull()
  })

  it('is the one that an address or the history names, in the text to come', async () => {
    page.open(state({}), { asked: [{ text: 'the cat sees' }] as Asked[], query: 2 })
    await answered()
    expect(page.query).toBe(2)
    page.go({ asked: [{ text: 'a cat sees the dog' }] as Asked[], query: 1 })
    await answered()
    expect(page.query).toBe(1)
    page.go({ asked: [{ text: 'a cat sees the dog' }] as Asked[], query: 4 })
    await answered()
    expect(page.query).toBe(4)
    expect(await say('the dog')).toBe(1)
  })
})
