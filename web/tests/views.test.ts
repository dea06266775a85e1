import { describe, expect, it } from 'vitest'
import { nearest, possible, VIEWS } from '../src/lib/views'
import type { Walk } from '../src/lib/walk'

const none = { family: '', kinds: {}, writes: 'nothing' as const, stacks: [], sides: [], course: false }
const translator = { family: 'transformer', kinds: { cross: [2, 4] as [number, number] }, writes: 'text' as const, stacks: ['encoder' as const], sides: ['source' as const], course: true }
const of = (model: Parameters<typeof possible>[1]) => VIEWS.map(([view]) => view).filter((view) => possible(view, model))

describe('views', () => {
  it('are those that the model has something for', () => {
    expect(of(none)).toEqual(['dictionary'])
    expect(of(translator)).toEqual(VIEWS.map(([view]) => view).filter((view) => view !== 'walk' && view !== 'without'))
    expect(of({ ...translator, walk: {} as Walk, without: true })).toEqual(VIEWS.map(([view]) => view))
    expect(of({ ...translator, walk: null, classic: { pronoun: 'it', sentences: [] } })).toContain('walk')
    expect(of({ ...translator, kinds: {}, stacks: [] })).toEqual(['figure', 'writing', 'words', 'dictionary', 'training'])
    expect(of({ ...translator, writes: 'classes' })).not.toContain('writing')
  })

  it('give way to the first that is there', () => {
    expect(nearest('words', translator)).toBe('words')
    expect(nearest('words', none)).toBe('dictionary')
    expect(nearest('walk', translator)).toBe('heads')
    expect(nearest('walk', { ...translator, walk: {} as Walk })).toBe('walk')
    expect(nearest('heads', { ...none, course: true })).toBe('dictionary')
  })
})
