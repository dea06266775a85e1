import { describe, expect, it } from 'vitest'
import type { Label, Picture } from '../src/lib/look'
import { common, differing, matched, shared, unmatched, within } from '../src/lib/shared'

const labels = (text: string): Label[] => text.split(' ').map((one, at) => ({ text: one, name: one, special: one === '</s>', places: [at] }))
const picture = (rows: string, columns: string, data: number[]): Picture => ({ rows: labels(rows), columns: labels(columns), data: Float32Array.from(data) })

describe('what two texts share', () => {
  it('is the longest sequence that stands in both, in order', () => {
    const [a, b] = [labels('the cat saw the dog'), labels('the old dog saw the very old cat')]
    expect(shared(a, b).map(([i, j]) => [a[i]!.text, b[j]!.text])).toEqual([['the', 'the'], ['saw', 'saw'], ['the', 'the']])
    expect(shared(a, a)).toEqual([0, 1, 2, 3, 4].map((at) => [at, at]))
    expect(shared(a, [])).toEqual([])
  })

  it('takes words that stand in each other’s place, where both have as many of them', () => {
    const [a, b] = [labels('it was tired because sie slept'), labels('today it was very tired because es slept')]
    expect(matched(a, b).map(([i, j]) => `${a[i]!.text} ${b[j]!.text}`)).toEqual(['it it', 'was was', 'tired tired', 'because because', 'sie es', 'slept slept'])
    expect(matched(a, [])).toEqual([])
    const found = common(picture('a x', 'a', [0.5, 0.25]), picture('z a y', 'a', [0.1, 0.5, 0.75]))!
    expect(found.pictures[0].rows.map(({ name }) => name)).toEqual(['a', 'x / y'])
    expect([...found.pictures[1].data]).toEqual([0.5, 0.75])
  })

  it('names what is compared with nothing', () => {
    expect(unmatched(labels('on monday it was sie </s>'), labels('it was very es </s>'))).toEqual([['on', 'monday', 'sie'], ['very', 'es']])
    expect(unmatched(labels('a b'), labels('a b'))).toEqual([[], []])
  })

  it('tells the words of two texts apart', () => {
    const said = differing('Das Tier ist es .'.split(' '), 'Tier ist sie .'.split(' ')).map((words) => words.filter(({ other }) => other).map(({ text }) => text))
    expect(said).toEqual([['Das', 'es'], ['sie']])
  })

  it('keeps the weights as they are', () => {
    const one = picture('a b </s>', 'a b </s>', [0.1, 0.2, 0.7, 0.3, 0.4, 0.3, 1, 0, 0])
    const other = picture('a </s>', 'a </s>', [0.5, 0.5, 0.25, 0.75])
    const found = common(one, other)!
    expect(found.rows).toEqual([0, 2])
    expect([...found.pictures[0].data]).toEqual([...Float32Array.from([0.1, 0.7, 1, 0])])
    expect([...found.pictures[1].data]).toEqual([0.5, 0.5, 0.25, 0.75])
    expect(within(found.pictures[0])).toBeCloseTo(0.9, 6)
  })

  it('is nothing where only special tokens or signs are', () => {
    expect(common(picture('a . </s>', 'a . </s>', new Array(9).fill(1 / 3)), picture('b . </s>', 'b . </s>', new Array(9).fill(1 / 3)))).toBeNull()
  })
})
