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
    page.at({ ...place, view: 'words', whole: true })
    vi.runAllTimers()
    expect(seen.entries.map(({ state }) => [kept(state)!.view, kept(state)!.query, kept(state)!.whole])).toEqual([
      ['heads', 4, false],
      ['words', null, true],
    ])
    page.at({ ...place, view: 'words', asked: [{ ...asked, model: 1 }] })
    expect(seen.entries.length).toBe(3)
    page.at({ ...place, view: 'words', kind: 'encoder', asked: [{ ...asked, model: 1 }] })
    page.at({ ...place, view: 'words', kind: 'encoder', asked: [{ ...asked, model: 1, snapshot: 'step 5' }] })
    expect(seen.entries.length).toBe(5)
  })

  it('has a step for every step of the walk', () => {
    const seen = browser()
    const page = new Entries(seen as unknown as History)
    page.at({ ...place, view: 'walk', step: 1 })
    page.at({ ...place, view: 'walk', step: 2 })
    page.at({ ...place, view: 'heads', step: 2 })
    page.at({ ...place, view: 'heads', step: 3 })
    vi.runAllTimers()
    expect(seen.entries.map(({ state }) => [kept(state)!.view, kept(state)!.step])).toEqual([['walk', 1], ['walk', 2], ['heads', 3]])
  })

  it('has a step for every text, however many keys it took', () => {
    const seen = browser()
    const page = new Entries(seen as unknown as History)
    const typed = (text: string, target: string | null = null) => page.at({ ...place, asked: [{ ...asked, text, target }] })
    const texts = () => {
      vi.runAllTimers()
      return seen.entries.map(({ state }) => kept(state)!.asked[0]!.text + (kept(state)!.asked[0]!.target ?? ''))
    }
    for (const text of ['', 'a']) typed(text)
    // before the first text there is nothing to go back to
    expect(texts()).toEqual(['a'])
    for (const text of ['ab', 'abc', '', 'x']) typed(text)
    expect(texts()).toEqual(['a', 'x'])
    page.settled()
    for (const text of ['xy', 'xyz']) typed(text)
    page.settled()
    typed('an example')
    page.settled()
    typed('an example', ' forced')
    expect(texts().slice(-4)).toEqual(['x', 'xyz', 'an example', 'an example forced'])
    page.settled()
    page.at({ ...place, query: 2, asked: [{ ...asked, text: 'an example', target: ' forced' }] })
    expect(texts().slice(-1)).toEqual(['an example forced'])
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
