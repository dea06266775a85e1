import { expect, test } from 'vitest'
import { added, guesses, longest, nexts, toldGuess, type LayersValues } from '../src/lib/layers'
import type { Payload } from '../src/lib/payload'

const grid = (rows: number[][]) => ({ shape: [rows.length, rows[0]!.length], data: Float32Array.from(rows.flat()) })
const payload: Payload<LayersValues> = {
  values: {
    stack: 'decoder',
    stacks: ['decoder'],
    norm_place: 'pre',
    tokens: ['a', 'b'],
    parts: [[1, 'attention'], [1, 'feedforward'], [2, 'attention'], [2, 'feedforward']],
    lens: [['x', 'y'], ['x', 'z']],
  },
  arrays: {
    length: grid([[1, 3], [2, 2], [0.5, 0.25], [0, 1]]),
    cosine: grid([[0, 0.5], [-1, 1], [0.5, 0.5], [1, 0]]),
    best: grid([[0.5, 0.25], [1, 0.75]]),
    own: grid([[0.5, 0.125], [1, 0.75]]),
    rank: grid([[1, 4], [1, 1]]),
  },
}

test('a token has its own figures', () => {
  expect(added(payload, 1)[0]).toEqual({ layer: 1, name: 'self-attention', length: 3, cosine: 0.5 })
})

test('one scale holds for all tokens, the stream’s own length within it', () => {
  expect(longest(payload)).toBe(3)
  expect(longest({ ...payload, arrays: { ...payload.arrays, length: grid([[0.5, 0.25]]) } })).toBe(1)
})

test('the first layer comes first, and says how early the last layer’s word was there', () => {
  const [first, last] = guesses(payload)
  expect([first!.layer, last!.layer]).toEqual([1, 2])
  expect(first!.row[1]).toEqual({ piece: 'y', probability: 0.25, final: 'z', own: 0.125, rank: 4 })
  expect(guesses({ ...payload, values: { ...payload.values, lens: null } })).toEqual([])
})

test('where the stack writes, a place is followed by what is written next', () => {
  expect(nexts(payload, true)).toEqual(['b', 'z'])
  expect(nexts(payload, false)).toBeNull()
  expect(nexts({ ...payload, values: { ...payload.values, lens: null } }, true)).toBeNull()
})

test('a guess is told in a sentence', () => {
  const [a, b] = guesses(payload)[0]!.row
  const shown = (piece: string) => `<${piece}>`
  expect(toldGuess(b!, 1, 'b', shown)).toBe('At “b”, after layer 1: <y>, 25 %. After the last layer it is <z>, which has 13 % here, rank 4.')
  expect(toldGuess(a!, 1, 'a', shown)).toBe('At “a”, after layer 1: <x>, 50 %; so it is after the last layer.')
})
