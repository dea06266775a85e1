import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Entries, kept } from '../src/lib/history'
import { type Place, unchanged, written } from '../src/lib/link'

const asked = { model: 0, snapshot: null, text: 'a', target: null, branch: null, image: null, changes: unchanged() }
const place: Place = { view: 'heads', kind: 'cross', layer: 1, head: 1, merge: 'head', whole: false, query: null, asked: [asked] }

/** A history as a browser keeps it. */
function browser(most = Infinity) {
  const entries: { state: unknown; url: string }[] = [{ state: null, url: '' }]
  const check = (state: unknown) => {
    if (JSON.stringify(state).length > most) throw new DOMException('too large', 'DataCloneError')
  }
  return {
    entries,
    pushState: (state: unknown, _: string, url: string) => (check(state), void entries.push({ state, url })),
    replaceState: (state: unknown, _: string, url: string) => (check(state), void entries.splice(-1, 1, { state, url })),
  }
}

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

describe('the history', () => {
  it('has a step for every view and model, and none for what is done in a view', () => {
    const seen = browser()
    const page = new Entries(seen as unknown as History)
    page.at(place)
    page.at({ ...place, query: 3 })
    vi.runAllTimers()
    expect(seen.entries).toEqual([{ state: { regard: { ...place, query: 3 } }, url: written({ ...place, query: 3 }) }])
    // what the view before was like at last is kept, even where it was not written yet
    page.at({ ...place, query: 4 })
    page.at({ ...place, view: 'words', query: 4 })
    page.at({ ...place, view: 'words', asked: [{ ...asked, text: 'b' }] })
    vi.runAllTimers()
    expect(seen.entries.map(({ state }) => [kept(state)!.view, kept(state)!.query, kept(state)!.asked[0]!.text])).toEqual([
      ['heads', 4, 'a'],
      ['words', null, 'b'],
    ])
    page.at({ ...place, view: 'words', asked: [{ ...asked, model: 1 }] })
    expect(seen.entries.length).toBe(3)
  })

  it('makes no step of going back', () => {
    const seen = browser()
    const page = new Entries(seen as unknown as History)
    page.at(place)
    page.at({ ...place, view: 'words' })
    page.came(place)
    page.at(place)
    vi.runAllTimers()
    expect(seen.entries.length).toBe(2)
  })

  it('keeps what an address has no room for, unless it is too much for the browser', () => {
    const long = { ...place, asked: [{ ...asked, text: 'ab '.repeat(30_000) }] }
    for (const [most, state] of [[Infinity, long], [1000, null]] as const) {
      const seen = browser(most)
      const page = new Entries(seen as unknown as History)
      page.at(long)
      vi.runAllTimers()
      expect(kept(seen.entries[0]!.state)).toEqual(state)
      expect(seen.entries[0]!.url.length).toBeLessThan(200)
    }
  })

  it('is not taken for what others keep in it', () => {
    expect([null, undefined, 'a', 3, {}, { other: 1 }].map(kept)).toEqual([null, null, null, null, null, null])
  })
})
