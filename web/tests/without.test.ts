import { describe, expect, it } from 'vitest'
import { unchanged } from '../src/lib/link'
import type { Kind } from '../src/lib/types'
import { without } from '../src/lib/without'

const head = (number: number): [Kind, number, number] => ['cross', 2, number]

describe('what is taken away', () => {
  it('is named, one after the other', () => {
    expect(without(unchanged())).toBe('')
    expect(without({ off: [head(1)], positions: false, scaling: true, mask: true })).toBe('encoder–decoder head 2·1, positions')
    expect(without({ off: [], positions: true, scaling: false, mask: false })).toBe('scaling, the mask')
  })

  it('is counted where it is much', () => {
    const off = [1, 2, 3, 4, 5].map(head)
    expect(without({ ...unchanged(), off })).toBe(`${[1, 2, 3, 4].map((number) => `encoder–decoder head 2·${number}`).join(', ')}, 1 more head`)
    expect(without({ ...unchanged(), off: [...off, head(6)] })).toMatch(/, 2 more heads$/)
  })
})
