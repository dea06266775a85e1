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
