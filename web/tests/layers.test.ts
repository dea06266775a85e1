import { expect, test } from 'vitest'
import { added, guesses, toldGuess, type LayersValues } from '../src/lib/layers'
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

test('of all tokens the mean is shown, of one its own figures', () => {
  expect(added(payload, null).map(({ length, cosine }) => [length, cosine])).toEqual([[2, 0.25], [2, 0], [0.375, 0.5], [0.5, 0.5]])
  expect(added(payload, 1)[0]).toEqual({ layer: 1, name: 'self-attention', length: 3, cosine: 0.5 })
})

test('the last layer comes first, and says how early its own word was there', () => {
  const [last, first] = guesses(payload)
  expect([last!.layer, first!.layer]).toEqual([2, 1])
  expect(first!.row[1]).toEqual({ piece: 'y', probability: 0.25, own: 0.125, rank: 4 })
  expect(guesses({ ...payload, values: { ...payload.values, lens: null } })).toEqual([])
})

test('a guess is told in a sentence', () => {
  const guess = guesses(payload)[1]!.row[1]!
  expect(toldGuess(guess, 1, 'b')).toBe('At “b”, after layer 1: y, 25 %. What the last layer finds most probable has 13 % here, rank 4.')
})
