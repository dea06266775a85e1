import { describe, expect, it } from 'vitest'
import { beside, carried, comparison, followed } from '../src/lib/comparison'
import { unchanged } from '../src/lib/link'
import type { Model } from '../src/lib/types'

const pane = (given: object = {}) => ({ model: { number: 0 }, text: 'a', snapshot: null as string | null, changes: unchanged(), ...given })

describe('what is compared', () => {
  it('is what differs most', () => {
    const first = pane()
    expect(comparison(first, pane({ text: 'b' }))).toBe('sentences')
    expect(comparison(first, pane())).toBe('sentences')
    expect(comparison(first, pane({ snapshot: 'step 1' }))).toBe('checkpoints')
    expect(comparison(first, pane({ model: { number: 1 }, snapshot: 'step 1' }))).toBe('models')
    expect(comparison(first, pane({ changes: { ...unchanged(), mask: false } }))).toBe('changes')
    expect(comparison(first, pane({ text: 'b', changes: { ...unchanged(), mask: false } }))).toBe('sentences')
  })
})

it('beside a model stand those with attention that read the same sort of thing', () => {
  const model = (number: number, given: Partial<Model> = {}) => ({ number, ready: true, reads: 'text', kinds: { encoder: [1, 1] }, ...given }) as Model
  const models = [model(0), model(1, { kinds: {} }), model(2, { reads: 'gapped' }), model(3, { reads: 'image' }), model(4, { ready: false }), model(5)]
  expect(beside(models[0]!, models).map(({ number }) => number)).toEqual([2, 5])
})

describe('a kept word', () => {
  const wide = 'The animal crossed the street as it was too wide'.split(' ')
  it('is kept in a second sentence where it stands there', () => {
    expect(carried(6, wide, 'The animal crossed the street as it was too tired'.split(' '))).toBe(6)
    expect(carried(6, wide, 'Yesterday it rained'.split(' '))).toBe(1)
    // the second of its kind, and the last where there are fewer
    expect(carried(4, 'a b c d b'.split(' '), 'b x b y b'.split(' '))).toBe(4)
    expect(carried(3, 'a b c b'.split(' '), 'b x b y'.split(' '))).toBe(2)
    expect(carried(3, 'a b c b'.split(' '), 'x b y'.split(' '))).toBe(1)
  })
  it('is what stands in its place where the sentences are as long', () => {
    expect(carried(9, wide, 'The animal crossed the street as it was too tired'.split(' '))).toBe(9)
    expect(carried(9, wide, 'The animal slept'.split(' '))).toBeNull()
    expect(carried(null, wide, wide)).toBeNull()
    expect(carried(40, wide, wide)).toBeNull()
  })
})

describe('the kept word when a text is another', () => {
  const follow = (row: number, before: string, after: string) => followed(row, before.split(' '), after.split(' '))
  it('is the same where the text before it or behind it is', () => {
    expect(follow(1, 'the cat sleeps', 'the cat sees the dog')).toBe(1)
    expect(follow(4, 'the cat sees the dog', 'a small cat sees the dog')).toBe(5)
    expect(follow(3, 'the cat sees the dog', 'the cat that the dog sees sees the dog')).toBe(7)
    expect(follow(4, 'the cat sees the dog', 'sees the dog')).toBe(2)
  })
  it('is found between them, as often said before', () => {
    expect(follow(2, 'x b a b y', 'x a b c b y')).toBe(1)
    expect(follow(1, 'a b b c', 'd b e')).toBe(1)
    expect(follow(2, 'a b b c', 'd b e')).toBeNull()
  })
  it('is none where it is gone', () => {
    expect(follow(2, 'the cat sleeps', 'the cat')).toBeNull()
    expect(follow(1, 'the cat sleeps', 'the dog sleeps')).toBeNull()
    expect(follow(9, 'the cat sleeps', 'the cat sleeps')).toBeNull()
    expect(followed(0, [], ['a'])).toBeNull()
  })
})
