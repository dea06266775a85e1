import { describe, expect, it } from 'vitest'
import { COURSE, stopAt, stops } from '../src/lib/stops'
import type { Model } from '../src/lib/types'
import { VIEWS } from '../src/lib/views'

const classic = { pronoun: 'it', sentences: [] }
const model = { kinds: { encoder: [2, 2] }, writes: 'text', stacks: ['encoder'], family: 'transformer', sides: ['source'], course: false, classic, walk: classic } as unknown as Model

describe('what arrow keys go through', () => {
  it('is every view, in the order of the course', () => {
    expect([...COURSE].sort()).toEqual(VIEWS.map(([view]) => view).sort())
    const views = stops(model).map(({ view }) => view)
    expect([...new Set(views)]).toEqual(COURSE.filter((view) => view !== 'training' && view !== 'without'))
  })

  it('is every step of the walk before', () => {
    const all = stops(model)
    expect(all.slice(0, 7).map(({ view, step }) => [view, step])).toEqual([...[1, 2, 3, 4, 5, 6].map((step) => ['walk', step]), ['heads', 1]])
    expect(stops({ ...model, walk: null } as Model).filter(({ view }) => view === 'walk').map(({ name }) => name)).toEqual(['What does “it” mean?'])
  })

  it('is found again', () => {
    const all = stops(model)
    for (const [at, { view, step }] of all.entries()) expect(stopAt(all, view, step)).toBe(at)
    expect(stopAt(all, 'walk', 9)).toBe(5)
    expect(stopAt(all, 'heads', 4)).toBe(all.findIndex(({ view }) => view === 'heads'))
  })
})
