import { describe, expect, it } from 'vitest'
import { chance, conclusion, exchanged, likelies, likely, measured, pair, sameBag, shuffled, together, words } from '../src/lib/order'
import { within } from '../src/lib/continued'
import type { LookValues, Output, WrittenToken } from '../src/lib/types'

describe('a sentence in another order', () => {
  it('has the same words and the mark at its end', () => {
    const text = 'The animal didn’t cross the street.'
    for (let seed = 0; seed < 50; seed++) {
      const found = shuffled(text, seed)!
      expect(found).not.toBe(text)
      expect(found.endsWith('.')).toBe(true)
      expect(found.startsWith('The ')).toBe(true)
      expect(sameBag(found.slice(0, -1).split(' '), text.slice(0, -1).split(' '))).toBe(true)
    }
  })

  it('is always the same for one seed', () => {
    expect(shuffled('a b c d e f', 3)).toBe(shuffled('a b c d e f', 3))
  })

  it('is there only if words differ', () => {
    expect(shuffled('', 1)).toBeNull()
    expect(shuffled('x', 1)).toBeNull()
    expect(shuffled('na na na', 1)).toBeNull()
    expect(shuffled('ab', 1)).toBe('ba')
    expect(shuffled('one two', 1)).toBe('two one')
    expect(shuffled('...', 1)).toBeNull()
  })

  it('has characters for words where there are no spaces', () => {
    expect([...shuffled('猫在睡觉。', 2)!].sort()).toEqual([...'猫在睡觉。'].sort())
    expect(shuffled('猫在睡觉。', 2)!.endsWith('。')).toBe(true)
  })

  it('comes up in every order about equally often', () => {
    const seen = new Map<string, number>()
    for (let seed = 0; seed < 5000; seed++) {
      const found = shuffled('first a b c', seed)!
      seen.set(found, (seen.get(found) ?? 0) + 1)
    }
    expect(seen.size).toBe(5)
    for (const count of seen.values()) expect(count).toBeGreaterThan(850)
  })
})

describe('chance', () => {
  it('is spread evenly from 0 to 1', () => {
    const random = chance(7)
    const tenth = new Array<number>(10).fill(0)
    for (let i = 0; i < 10_000; i++) tenth[Math.floor(random() * 10)]! += 1
    for (const count of tenth) expect(Math.abs(count - 1000)).toBeLessThan(150)
  })
})

it('bags are the same in any order, but not with other numbers of each', () => {
  expect(sameBag(['a', 'b', 'a'], ['a', 'a', 'b'])).toBe(true)
  expect(sameBag(['a', 'b', 'a'], ['a', 'b', 'b'])).toBe(false)
  expect(sameBag(['a'], ['a', 'a'])).toBe(false)
})

describe('two words', () => {
  const chosen = (text: string) => {
    const all = words(text)
    const found = pair(all)
    return found && [all[found[0]]!.text, all[found[1]]!.text, exchanged(text, all, found)]
  }

  it('that stand behind the same article are exchanged', () => {
    expect(chosen("The animal didn't cross the street because it was too tired.")).toEqual([
      'animal',
      'street',
      "The street didn't cross the animal because it was too tired.",
    ])
    expect(chosen('Der Hund sieht den Mann, der lacht.')!.slice(0, 2)).toEqual(['Hund', 'Mann'])
    expect(chosen('Die Frau sah den Hund')!.slice(0, 2)).toEqual(['Frau', 'Hund'])
  })

  it('are else the longest, the first word last', () => {
    expect(chosen('Wonderfully quiet nights, and stars')!.slice(0, 2)).toEqual(['nights', 'quiet'].sort((a, b) => (a < b ? 1 : -1)))
    expect(chosen('Peter sings')![2]).toBe('sings Peter')
    expect(chosen('na na na')).toBeNull()
    expect(chosen('')).toBeNull()
  })

  it('are no gaps and no marks', () => {
    expect(chosen('The cow crossed the [MASK] because the dog slept')!.slice(0, 2)).toEqual(['cow', 'dog'])
    expect(words("The [MASK] didn't <extra_0> go, x2.").map(({ text }) => text)).toEqual(['The', "didn't", 'go', 'x2'])
    const text = "L’été, naïveté: don't"
    expect(words(text).map(({ start, end }) => text.slice(start, end))).toEqual(['L’été', 'naïveté', "don't"])
  })
})

describe('what two orders teach', () => {
  const orders = { what: 'the same output', when: 'the two words are exchanged', other: true, bag: true, masked: false }
  const told = (own: [number, number], without: [number, number], more: Partial<typeof orders> = {}) =>
    conclusion({ with: own, without }, { ...orders, ...more })

  it('is said by the numbers', () => {
    expect(told([Math.log(0.6), Math.log(0.002)], [-40, -40.00001])).toBe(
      'With positions the same output is 300 times less probable when the two words are exchanged, and something else comes out. ' +
        'Without positions both orders are one and the same to the model, but for rounding: it reads a bag of words.',
    )
    expect(told([-2, -1], [-40, -41])).toMatch(/^With positions the same output is 2.7 times more probable .* Without positions it is 2.7 times less probable, though/)
    expect(told([-0.01, -0.02], [-3, -3], { other: false })).toMatch(/^With positions the same output is about as probable when the two words are exchanged: here the order tells this model nothing that it needs \(try other words\)\. /)
    expect(told([-0.01, -50], [-3, -3])).toContain('more than a million times less probable')
  })

  it('claims no bag of words where there is none', () => {
    for (const more of [{ bag: false }, { masked: true }])
      for (const without of [[-3, -3], [-3, -3.2]] as [number, number][]) expect(told([-1, -2], without, more)).not.toContain('one and the same')
    expect(told([-1, -2], [-3, -3.2], { masked: true })).toContain('before it alone')
    expect(told([-1, -2], [-3, -3.2], { bag: false })).toContain('other pieces')
    expect(told([-1, -2], [-3, -3], { masked: true })).toContain('makes no difference here')
  })

  it('has probabilities that are smaller than numbers can be', () => {
    expect(together([0.5, 0.25])).toBeCloseTo(Math.log(0.125))
    expect(together([0.5, null])).toBeNull()
    expect(likely(Math.log(0.64))).toBe('64 %')
    expect(likely(Math.log(0.0002))).toBe('0.02 %')
    expect([3e-5, 2.2e-6, 1e-7, 9.96e-7].map((one) => likely(Math.log(one)))).toEqual(['0.003 %', '0.00022 %', '0.00001 %', '0.0001 %'])
    expect(likely(Math.log(7.7e-22))).toBe('7.7 × 10⁻²⁰ %')
    expect(likely(Math.log(9.96e-12))).toBe('1 × 10⁻⁹ %')
    const two = (one: number, other: number) => likelies([Math.log(one), Math.log(other)])
    expect([two(0.64, 0.02), two(0.1465, 0.1454), two(0.0149, 0.0106)]).toEqual([['64 %', '2 %'], ['14.7 %', '14.5 %'], ['1.5 %', '1.1 %']])
    expect([two(2.21e-6, 2.24e-6), two(7.71e-22, 7.74e-22)]).toEqual([['0.000221 %', '0.000224 %'], ['7.71 × 10⁻²⁰ %', '7.74 × 10⁻²⁰ %']])
    expect(likelies([-40, -40.00001])[0]).toBe(likelies([-40])[0])
    expect(likelies([null, -40])[0]).toBeNull()
    expect(likely(-1000)).toBe('5.1 × 10⁻⁴³³ %')
  })
})

describe('what is measured', () => {
  const of = (output: Output, probability: (number | null)[] | null = null) => ({ output, probability }) as unknown as LookValues
  it('is the probability of what the first reading said', () => {
    const classes = (good: number, bad: number) => of({ kind: 'classes', classes: good > bad ? [['good', good], ['bad', bad]] : [['bad', bad], ['good', good]], said: '', several: false })
    expect(measured(classes(0.75, 0.25), classes(0.1, 0.9), 0)).toBeCloseTo(Math.log(0.1))
    expect(measured(of({ kind: 'text', text: 'a' }), of({ kind: 'text', text: 'b' }, [0.5, 0.5]), 0)).toBeCloseTo(Math.log(0.25))
    // what a language model was given is not counted
    const next = of({ kind: 'continuation' }, [null, 0.1, 0.5, 0.25])
    expect(measured(next, next, 2)).toBeCloseTo(Math.log(0.125))
    // what was forced has no end, which the model writes all the same: nothing of the text is counted in its place
    const ended = within([{ piece: '▁go', id: 7 }, { piece: '</s>', id: 0 }] as WrittenToken[], { source: new Array(3).fill(null) }, 9)
    expect(ended.map(({ id }) => id)).toEqual([7])
    expect(measured(next, of({ kind: 'continuation' }, [null, 0.1, 0.5, 0.25]), 3)).toBeCloseTo(Math.log(0.25))
    expect(measured(next, next, 4)).toBeNull()
  })
  it('is of gaps what filled them, where it is known which is which', () => {
    const gaps = (...some: [string, number][][]) => of({ kind: 'words', gaps: some, text: '' })
    const first = gaps([['a', 0.5], ['b', 0.25]], [['c', 0.5]])
    expect(measured(first, gaps([['b', 0.5], ['a', 0.25]], [['c', 0.1]]), 0)).toBeCloseTo(Math.log(0.025))
    expect(measured(first, gaps([['b', 0.5]], [['c', 0.1]]), 0)).toBeNull()
    expect(measured(first, first, 0, true)).toBeNull()
    expect(measured(of({ kind: 'tags', tags: [] }), of({ kind: 'tags', tags: [] }), 0)).toBeNull()
  })
})
