import { describe, expect, it } from 'vitest'
import { changesMost, cosine, Equation, exponentials, largest, places, sharpened, sum, telling } from '../src/lib/equation'
import type { Token } from '../src/lib/types'

const floats = (data: number[], ...shape: number[]) => ({ shape, data: Float32Array.from(data) })

/** Two numbers a key, three keys, the last of them hidden; independent of the page: by hand. */
function given(additive = false) {
  const [w0, w1] = [Math.exp(1.5) / (Math.exp(1.5) + Math.exp(-0.5)), Math.exp(-0.5) / (Math.exp(1.5) + Math.exp(-0.5))]
  return {
    values: { divisor: 2, additive },
    arrays: {
      query: floats([1, -2], 2),
      key: floats([3, 0, 1, 1, 5, 5], 3, 2),
      value: floats([1, 2, 3, 4, 5, 6], 3, 2),
      score: floats([3, -1, -5], 3),
      bias: floats([0, 0, 0.5], 3),
      weight: floats([w0, w1, 0], 3),
      unscaled: floats([0.98, 0.02, 0], 3),
      unmasked: floats([0.8, 0.1, 0.1], 3),
      hidden: { shape: [3], data: Uint8Array.from([0, 0, 1]) },
    },
  }
}

describe('the equation of one query', () => {
  const equation = new Equation(given())
  it('products add up to the score', () => {
    expect([...equation.products(1)]).toEqual([1, -2])
    expect([...equation.score]).toEqual([3, -1, -5])
  })
  it('scores are divided, and positions added', () => {
    expect([...equation.scaled]).toEqual([1.5, -0.5, -2])
    expect(equation.biased).toBe(true)
  })
  it('hidden keys do not enter, unless the reader takes the mask away', () => {
    expect([...equation.entering({ scaling: false, mask: false })]).toEqual([1.5, -0.5, -Infinity])
    expect([...equation.entering({ scaling: false, mask: true })]).toEqual([1.5, -0.5, -2])
    expect([...equation.entering({ scaling: true, mask: false })]).toEqual([3, -1, -Infinity])
  })
  it('exponentials over their sum are the weights', () => {
    const { data, sum } = exponentials(equation.entering({ scaling: false, mask: false }))
    for (let key = 0; key < 3; key++) expect(data[key]! / sum).toBeCloseTo(equation.weight[key]!, 6)
  })
  it('large exponents are taken less the largest, which changes no share', () => {
    const found = exponentials([1000, 999, -Infinity])
    expect(found.shift).toBe(1000)
    expect([...found.data].map((one) => one / found.sum)).toEqual([1 / (1 + Math.exp(-1)), Math.exp(-1) / (1 + Math.exp(-1)), 0])
  })
  it('what the keys give adds up to the context', () => {
    const w = equation.weight
    expect(equation.context[0]).toBeCloseTo(w[0]! * 1 + w[1]! * 3, 6)
    expect(equation.context[1]).toBeCloseTo(w[0]! * 2 + w[1]! * 4, 6)
    expect(sum([0, 1, 2].map((key) => equation.part(key)[1]!))).toBeCloseTo(equation.context[1]!, 12)
  })
  it('what was altered goes on to the sum', () => {
    for (const [without, weights] of [[{ scaling: true, mask: false }, [0.98, 0.02, 0]], [{ scaling: false, mask: true }, [0.8, 0.1, 0.1]]] as const) {
      const altered = equation.altered(without)
      const found = equation.mixed(altered)
      expect(found[0]).toBeCloseTo(weights[0] * 1 + weights[1] * 3 + weights[2] * 5, 5)
      expect(found[1]).toBeCloseTo(weights[0] * 2 + weights[1] * 4 + weights[2] * 6, 5)
      expect(sum([0, 1, 2].map((key) => equation.part(key, altered)[0]!))).toBeCloseTo(found[0]!, 12)
      expect(found[0]).not.toBeCloseTo(equation.context[0]!, 2)
    }
    expect([...equation.mixed(equation.weight)]).toEqual([...equation.context])
  })
  it('what was altered is the server’s', () => {
    expect([...equation.altered({ scaling: true, mask: false })]).toEqual([...Float32Array.from([0.98, 0.02, 0])])
    expect([...equation.altered({ scaling: false, mask: true })]).toEqual([...Float32Array.from([0.8, 0.1, 0.1])])
    expect(equation.altered({ scaling: false, mask: false })).toBe(equation.weight)
  })
  it('additive scores are the server’s, and each number is bent', () => {
    const additive = new Equation({ ...given(true), arrays: { ...given().arrays, score: floats([7, 8, 9], 3) } })
    expect([...additive.score]).toEqual([7, 8, 9])
    expect([...additive.bent(1)]).toEqual([Math.tanh(2), Math.tanh(-1)])
  })
})

describe('around it', () => {
  const tokens = (texts: string[]): Token[] => texts.map((text, at) => ({ text, start: at, end: at + 1, special: text.startsWith('<') }))
  it('a pronoun is looked at first, else a word in the middle', () => {
    expect(telling(tokens(['The', '▁cat', '▁slept', ',', '▁it', '▁was', '▁tired', '</s>']))).toBe(4)
    expect(telling(tokens(['<s>', '▁a', '▁man', '▁sleeps', '.']))).toBe(2)
    expect(telling(tokens(['<s>']))).toBe(0)
  })
  it('the largest first, the earlier of equals', () => {
    expect(largest([1, 3, 2, 3], 3)).toEqual([1, 3, 2])
  })
  it('numbers with so many places', () => {
    expect([1, -0.004, -1.257, -Infinity].map((one) => places(one))).toEqual(['1.00', '0.00', '−1.26', '−∞'])
  })
})

it('the cosine of two vectors', () => {
  expect(cosine([1, 0], [3, 0])).toBe(1)
  expect(cosine([1, 1], [1, 0])).toBeCloseTo(Math.SQRT1_2)
  expect(cosine([1, 2], [-2, 1])).toBe(0)
  expect(cosine([1, 2], [0, 0])).toBe(0)
})

describe('without scaling', () => {
  const softmax = (scores: number[]) => exponentials(scores).data.map((one, _, all) => one / all.reduce((a, b) => a + b, 0))
  it('the weights follow from those with it', () => {
    const scores = [3, -1, 0.5, 2]
    const found = sharpened(softmax(scores.map((one) => one / 4)), 4)
    softmax(scores).forEach((one, at) => expect(found[at]).toBeCloseTo(one, 12))
    expect([...sharpened([0, 1, 0], 5.6)]).toEqual([0, 1, 0])
  })
  it('the head that changes most is found', () => {
    const [sure, even, some] = [[1, 0, 0], [1 / 3, 1 / 3, 1 / 3], [0.5, 0.3, 0.2]]
    expect(changesMost([...sure, ...even, ...even, ...some], 2, 3, 5)).toMatchObject({ layer: 2, head: 2 })
    expect(changesMost([...sure, ...sure], 2, 3, 5).moved).toBe(0)
  })
  it('what each key adds is drawn as it is added', () => {
    const equation = new Equation(given())
    const parts = equation.parts(equation.weight)
    for (let key = 0; key < 3; key++) expect([...parts.subarray(key * 2, key * 2 + 2)]).toEqual([...equation.part(key)])
  })
})
