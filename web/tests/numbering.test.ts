import { expect, it } from 'vitest'
import { numbering } from '../src/lib/numbering'

const EVERY = [false, true].flatMap((divided) => [false, true].flatMap((biased) => [false, true].map((masked) => ({ divided, biased, masked }))))

it('numbers the steps of every equation without a hole', () => {
  for (const has of EVERY) {
    const { weights, ...steps } = numbering(has)
    const there = Object.values(steps).filter((one) => one !== null)
    expect(there).toEqual(there.map((_, at) => at + 1))
    expect(weights).toBe(there.length > 5 ? `3–${steps.softmax}` : '3')
    for (const name of ['divided', 'biased', 'masked'] as const) expect(steps[name] === null).toBe(!has[name])
  }
})

it('has seven steps where a decoder divides and hides', () => {
  expect(numbering({ divided: true, biased: false, masked: true })).toEqual({ keys: 1, product: 2, divided: 3, biased: null, masked: 4, softmax: 5, values: 6, sum: 7, weights: '3–5' })
  expect(numbering({ divided: true, biased: false, masked: false })).toMatchObject({ softmax: 4, values: 5, sum: 6, weights: '3–4' })
})
