import { describe, expect, it } from 'vitest'
import { fitting, leftOut, type Place, read, ROOM, unchanged, written } from '../src/lib/link'
import { KINDS, type Kind } from '../src/lib/types'

const asked = { model: 1, snapshot: 'step 1,000', text: 'a & b = "c" <img onerror>#?', target: 'd', branch: null, image: null, changes: { ...unchanged(), off: [['cross', 2, 3] as ['cross', number, number]], mask: false } }
const place: Place = { view: 'equation', kind: 'cross', layer: 2, head: 3, merge: 'head', whole: true, query: 7, asked: [asked, { ...asked, text: '', target: null, snapshot: null, model: 0, changes: unchanged() }] }

describe('an address', () => {
  it('says all that is shown, and is read back', () => {
    const found = read(written(place))
    expect(found).toMatchObject({ view: 'equation', kind: 'cross', layer: 2, head: 3, whole: true, query: 7 })
    expect(found.asked[0]).toMatchObject({ model: 1, snapshot: 'step 1,000', text: asked.text, target: 'd', changes: asked.changes })
  })

  it('says how the head is drawn, how heads are ordered, and what is compared', () => {
    const shown = { drawn: 'matrix', order: 'needs' } as const
    expect(read(written({ ...place, ...shown, view: 'compare', beside: 'gradient' }))).toMatchObject({ ...shown, beside: 'gradient' })
    const usual = { drawn: null, order: 'place', beside: null } as const
    expect(written({ ...place, ...usual })).toBe(written(place))
    expect(read(written({ ...place, ...usual, beside: 'models' }))).toMatchObject(usual)
    expect(read('#drawn=best&order=up&beside=me')).toMatchObject(usual)
  })

  it('says which idea is taken out', () => {
    expect(read(written({ ...place, view: 'without', idea: 'mask' })).idea).toBe('mask')
    expect(written({ ...place, idea: 'mask' })).toBe(written(place))
  })

  it('says which box of Figure 1 is open', () => {
    expect(read(written({ ...place, view: 'figure', box: 'encoder.2.attention' })).box).toBe('encoder.2.attention')
    expect(written({ ...place, box: 'encoder.2.attention' })).toBe(written(place))
  })

  it('says which step of the walk is shown', () => {
    expect(read(written({ ...place, view: 'walk', step: 4 }))).toMatchObject({ view: 'walk', step: 4 })
    expect(written({ ...place, view: 'walk', step: 1 })).toBe(written({ ...place, view: 'walk' }))
    expect(read(written({ ...place, step: 4 }))).not.toHaveProperty('step')
    expect(read(written({ ...place, view: 'walk', exchanged: true }))).toMatchObject({ view: 'walk', exchanged: true })
    expect(read(written({ ...place, view: 'heads', exchanged: true }))).not.toHaveProperty('exchanged')
    expect(read('#view=walk&exchanged=yes')).not.toHaveProperty('exchanged')
    for (const step of ['0', '-1', 'x']) expect(read(`#view=walk&step=${step}`)).not.toHaveProperty('step')
  })

  it('says that it is shown to a class', () => {
    expect(read(written({ ...place, classroom: true }))).toMatchObject({ classroom: true })
    expect(written({ ...place, classroom: false })).toBe(written(place))
    expect(read(written(place))).not.toHaveProperty('classroom')
  })

  it('says between which languages it translates, where they were chosen', () => {
    for (const between of [['en', 'fr'], [null, 'fr'], ['en', null]] as [string | null, string | null][])
      expect(read(written({ ...place, asked: [{ ...asked, between }] })).asked[0]).toMatchObject({ between })
    expect(read(written(place)).asked[0]).not.toHaveProperty('between')
  })

  it('says which part of a long text is seen, where one was chosen', () => {
    const found = (window: number | null) => read(written({ ...place, asked: [{ ...asked, window }, { ...asked, window: 12 }] })).asked.map((one) => one.window)
    expect(found(3)).toEqual([3, 12])
    expect(found(null)).toEqual([undefined, 12])
    expect(written({ ...place, asked: [{ ...asked, window: null }] })).toBe(written({ ...place, asked: [asked] }))
    for (const window of ['0', '-1', 'x', '1e9']) expect(read(`#window=${window}`).asked[0]).not.toHaveProperty('window')
  })

  it('names every use of attention', () => {
    for (const kind of KINDS) {
      const off: [Kind, number, number][] = [[kind, 1, 1]]
      const found = read(written({ ...place, kind, asked: [{ ...asked, changes: { ...unchanged(), off } }] }))
      expect([found.kind, found.asked[0]!.changes!.off]).toEqual([kind, off])
    }
  })

  it('leaves out what is not there, and takes no nonsense', () => {
    const found = read('#kind=sideways&layer=-1&head=1e9&merge=best&off=cross.x.1 decoder.1.2&token=%')
    expect(found.kind).toBeUndefined()
    expect(found.merge).toBeUndefined()
    expect(found.layer).toBeNull()
    expect(found.head).toBeUndefined()
    expect(found.asked[0]!.changes!.off).toEqual([['decoder', 1, 2]])
  })

  it('carries merged heads and images', () => {
    const found = read(written({ ...place, merge: 'rollout', layer: null, asked: [{ ...asked, image: { number: 4 } }] }))
    expect(found.merge).toBe('rollout')
    expect(found.layer).toBeNull()
    expect(found.asked[0]!.image).toEqual({ number: 4 })
    expect(found.asked.length).toBe(1)
  })

  it('leaves out a text that is too long, and says so', () => {
    const one = (given: object): Place => ({ ...place, asked: [{ ...asked, image: null, ...given }] })
    const fits = one({ text: 'a'.repeat(ROOM) })
    expect(read(written(fits)).asked[0]!.text).toBe('a'.repeat(ROOM))
    expect(leftOut(fits)).toBeNull()
    for (const name of ['text', 'target']) {
      const long = one({ [name]: 'a'.repeat(ROOM + 1) })
      expect(read(written(long)).asked[0]).not.toHaveProperty(name)
      expect(leftOut(long)).toBe('the text, which is too long for it')
    }
    expect(leftOut(one({ image: { number: 3 } }))).toBeNull()
    expect(leftOut(one({ image: { pixels: [1] } }))).toBe('the drawn image')
  })

  it('takes nothing away that a model does not have', () => {
    const off: [Kind, number, number][] = [['cross', 99, 1], ['encoder', 2, 4], ['encoder', 2, 5], ['decoder', 0, 1]]
    const all = { off, positions: false, scaling: false, mask: false }
    const encoder = { kinds: { encoder: [2, 4] as [number, number] }, positions: true, divisor: 4, masked: [] }
    expect(fitting(all, encoder)).toEqual({ off: [['encoder', 2, 4]], positions: false, scaling: false, mask: true })
    expect(fitting(all, { kinds: {}, positions: false, divisor: 1, masked: [] })).toEqual(unchanged())
  })
})
