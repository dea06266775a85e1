import { describe, expect, it } from 'vitest'
import { weightsName, weightsStep } from '../src/lib/weights'

const best = { ready: true, running: true, keeps: 'best' as const }
const newest = { ...best, keeps: 'newest' as const }
const done = { ...best, running: false }

describe('which weights are seen', () => {
  it('is finished only when the training is', () => {
    expect([best, newest, done, { ...best, ready: false }].map((model) => weightsName(model, null))).toEqual(['best so far', 'newest so far', 'finished', 'not there yet'])
    expect(weightsName(best, 'step 1,000')).toBe('step 1,000')
  })

  it('is told with its step', () => {
    expect(weightsStep(done, 1200)).toBe('Its weights are those of step 1,200, the best when they were tested')
    expect(weightsStep(newest, 1200)).toBe('Its weights are those of step 1,200, the newest so far that were tested')
  })
})
