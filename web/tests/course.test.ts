import { describe, expect, it } from 'vitest'
import { about, apart, end, grows, lastStep, layerName, left, nearest, outcomes, progress, scores, secondsAt, type Course, type CourseValues } from '../src/lib/course'

/** What the server makes of so many updates, a second each: means of equally many. */
function course(updates: number, points: number, given: Partial<CourseValues> = {}): Course {
  const width = Math.max(1, Math.ceil(updates / points))
  const means: number[] = []
  for (let from = 0; from < updates; from += width) {
    const some = Array.from({ length: Math.min(width, updates - from) }, (_, at) => from + at + 1)
    means.push(some.reduce((a, b) => a + b) / some.length)
  }
  const data = Float32Array.from(means)
  const grid = { shape: [data.length], data }
  return { values: { planned: 3000, running: true, whole: true, valid: [], samples: [], norms: { steps: [], names: [] }, ...given }, arrays: { step: grid, seconds: grid } }
}

describe('a course', () => {
  it('knows its last update however it was thinned', () => {
    for (const updates of [1, 2, 7, 599, 600, 601, 1200, 1201, 1799, 4839]) expect(lastStep(course(updates, 600))).toBe(updates)
    expect(lastStep(course(0, 600))).toBe(0)
  })

  it('says how far it is', () => {
    expect(progress(course(1200, 600))).toBe('training: step 1,200 of 3,000, about 30 minutes left')
    expect(progress(course(0, 600))).toBe('training: no step is made yet')
    expect(progress(course(1200, 600, { planned: null }))).toContain('training: step 1,200, for 20:00')
    expect(progress(course(3000, 3000, { running: false }))).toBe('3,000 steps in 50:00')
    expect(progress(course(1200, 1200, { running: false }))).toBe('ended at step 1,200 of 3,000, after 20:00')
    expect(left(course(2880, 600))).toBeCloseTo(120, 0)
    expect([20, 70, 250, 7200].map(about)).toEqual(['less than a minute', 'about a minute', 'about 4 minutes', 'about 2 hours'])
  })

  it('leaves room on the right only while it goes on', () => {
    expect(end(1401, false, 1401)).toBe(1401)
    expect(end(600, true, 3000)).toBe(1000)
    expect(end(2500, true, 3000)).toBe(3000)
  })

  it('finds the nearest, and seconds between', () => {
    expect([0, 2.4, 2.6, 99].map((one) => nearest([1, 2, 3, 10], one))).toEqual([0, 1, 2, 3])
    expect(nearest([], 1)).toBe(-1)
    expect(secondsAt(course(1000, 100), 50)).toBeCloseTo(50, 3)
    expect(secondsAt(course(1000, 100), 1000)).toBeCloseTo(1000, 3)
  })

  it('names layers from 1 and scores in order', () => {
    const names = ['encoder', 'encoder.layers.0', 'encoder.layers.11', 'head', 'relative_bias']
    expect(names.map((one) => layerName(one, names))).toEqual(['encoder, rest', 'encoder 1', 'encoder 12', 'head', 'relative bias'])
    const valid = [{ step: 1, seconds: 1, loss: 2, best: true }, { step: 2, seconds: 2, loss: 1, best: true, bleu: 20, chrf: 40 }]
    expect(scores(course(2, 9, { valid }))).toEqual(['bleu', 'chrf'])
  })

  it('puts what was written beside what was written before', () => {
    const one = (step: number, hypothesis: string) => ({ step, source: 'a', reference: 'b', hypothesis })
    const found = outcomes(course(9, 9, { samples: [one(3, 'x'), { ...one(3, 'p'), source: 'c' }, one(6, 'y'), one(9, 'z')] }))
    expect(found.map(({ step }) => step)).toEqual([3, 6, 9])
    expect(found[0]!.samples.map(({ before }) => before)).toEqual([null, null])
    expect(found[1]!.samples[0]!.before).toBe('x')
    expect(found[2]!.samples[0]!.before).toBe('y')
  })
})

describe('why two losses are not alike', () => {
  it('is told of what the training does, and of nothing else', () => {
    expect(apart({})).toBeNull()
    expect(apart({ label_smoothing: 0.1, dropout: 0.25 })).toMatch(/label smoothing \(0\.10 of .* and dropout \(0\.25 of .*counts neither/)
    expect(apart({ label_smoothing: 0.1, dropout: 0.25, adversarial: 0.5 })).toMatch(/smoothing .*, dropout .* and for one half .* \(by 0\.50 .*counts nothing of the kind/)
    expect(apart({ dropout: 0.1 })).not.toContain('smoothing')
    expect(apart({ label_smoothing: 0.1 })).not.toContain('dropout')
  })
})

describe('a course', () => {
  it('is asked for again while the training goes on, or its log is not read to the end', () => {
    expect([grows({ running: false, whole: true }), grows({ running: true, whole: true }), grows({ running: false, whole: false })]).toEqual([false, true, true])
  })
})
