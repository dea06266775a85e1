import { describe, expect, it } from 'vitest'
import { isTerm, signs, TERMS } from '../src/lib/terms'

describe('terms', () => {
  it('are sentences', () => {
    for (const text of Object.values(TERMS)) expect(text).toMatch(/^\p{Lu}.*\.$/u)
    expect(isTerm('rollout')).toBe(true)
    expect(isTerm('toString')).toBe(false)
  })

  it('are found among tokens, each once', () => {
    expect(signs(['The', 'an', '·im', '·al', '</s>', '</s>'])).toEqual(['·', '</s>'])
    expect(signs(['a', '.', 'mean', 'spread', '·'])).toEqual(['·'])
    expect(signs([])).toEqual([])
  })
})
