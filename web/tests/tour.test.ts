import { describe, expect, it } from 'vitest'
import { first, remember } from '../src/lib/tour'
import { touring } from '../src/lib/touring.svelte'

function storage() {
  const held = new Map<string, string>()
  return { getItem: (name: string) => held.get(name) ?? null, setItem: (name: string, value: string) => void held.set(name, value) }
}

describe('the tour', () => {
  it('comes once, where nothing else was asked for', () => {
    const there = storage()
    expect(first('', null, () => there)).toBe(true)
    expect(first('#', undefined, () => there)).toBe(true)
    expect(first('#view=words', null, () => there)).toBe(false)
    expect(first('', { view: 'words' }, () => there)).toBe(false)
    remember(() => there)
    expect(first('', null, () => there)).toBe(false)
  })

  it('does not come where it cannot be remembered', () => {
    const forbidden = () => {
      throw new Error('forbidden')
    }
    expect(first('', null, forbidden)).toBe(false)
    remember(forbidden)
  })

  it('stands at one step, or at none', () => {
    touring.begin(false)
    expect([touring.at, touring.read]).toEqual([0, false])
    touring.go(2)
    expect([touring.at, touring.read]).toEqual([2, true])
    touring.end()
    expect(touring.at).toBeNull()
  })
})
