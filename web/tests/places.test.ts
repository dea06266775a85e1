import { expect, it } from 'vitest'
import { column, distanceName, patches, placeName, rowOf, waveLength } from '../src/lib/places'

it('a wave is back where it began after its length', () => {
  const size = 64
  for (const dimension of [0, 1, 10, 11, 40, 63]) {
    const angle = (position: number) => position / 10_000 ** ((2 * Math.floor(dimension / 2)) / size)
    const far = 3 + waveLength(dimension, size)
    expect(Math.sin(angle(far))).toBeCloseTo(Math.sin(angle(3)), 6)
    expect(Math.cos(angle(far))).toBeCloseTo(Math.cos(angle(3)), 6)
  }
  expect(waveLength(0, 512)).toBeCloseTo(2 * Math.PI, 12)
})

it('rows and columns of a table are its own', () => {
  const table = { shape: [2, 3], data: Float32Array.from([1, 2, 3, 4, 5, 6]) }
  expect([...column(table, 1)]).toEqual([2, 5])
  expect([...rowOf(table, 1)]).toEqual([4, 5, 6])
})

it('places have names', () => {
  expect(placeName(5, null)).toBe('position 5')
  expect(placeName(0, { columns: 4 })).toBe('the class token')
  expect([1, 4, 5, 16].map((at) => placeName(at, { columns: 4 }))).toEqual(['patch 1,1', 'patch 1,4', 'patch 2,1', 'patch 4,4'])
  expect([-2, -1, 0, 1].map(distanceName)).toEqual(['2 tokens before', '1 token before', 'the token itself', '1 token behind'])
  expect(patches({ image: { height: 8, width: 12, channels: 1, largest: 16, patch: 4 } })).toEqual({ rows: 2, columns: 3 })
  expect(patches({ image: null })).toBeNull()
})
