import { describe, expect, it } from 'vitest'
import { Look } from '../src/lib/look'
import { unpacked } from '../src/lib/payload'
import type { LookValues } from '../src/lib/types'
import * as walk from '../src/lib/walk'
import { packed } from './packed'

const head = (kind: 'encoder' | 'decoder' | 'cross', layer: number, number: number): walk.Head => ({ kind, layer, head: number })
const shares = (antecedent: number, rival: number, pronoun = 0): walk.Shares => ({ antecedent, rival, nouns: 0.2, chance: 0.05, pronoun })
const looks = head('encoder', 2, 2)
const reads = head('cross', 1, 2)
const found: walk.Walk = {
  fits: true,
  pronoun: 'it',
  sentences: [
    { source: 'The animal was tired because it slept.', target: 'Das Tier war müde, weil es schlief.', antecedent: 'animal', rival: 'street', pronoun: 'es' },
    { source: 'The street was wide because it grew.', target: 'Die Straße war breit, weil sie wuchs.', antecedent: 'street', rival: 'animal', pronoun: 'sie' },
  ],
  encoder: looks,
  cross: reads,
  guess: 0.6,
  half: 0.5,
  tolerance: 0.02,
  study: {
    sentences: 200,
    right: 190,
    commonest: 77,
    heads: [
      { head: head('encoder', 1, 1), shares: shares(0.1, 0.1), right: 120 },
      { head: looks, shares: shares(0.93, 0.02), right: 101 },
      { head: head('decoder', 1, 1), shares: null, right: 191 },
      { head: head('cross', 1, 1), shares: shares(0, 0), right: 186 },
      { head: reads, shares: shares(0.001, 0.002, 0.97), right: 80 },
    ],
    steps: [{ heads: [reads], right: 80 }],
    smallest: { heads: [reads], right: 80 },
    without_lookers: { heads: [looks], right: 101 },
    spare: 2,
  },
}
const changed = (study: Partial<walk.Walk['study']>, more: Partial<walk.Walk> = {}): walk.Walk => ({ ...found, ...more, study: { ...found.study, ...study } })

describe('the walk says what was measured', () => {
  it('of the question', () => {
    const said = walk.question(found)
    for (const part of ['On 200 sentences', 'right in 190 of 200', 'right in 77']) expect(said).toContain(part)
    expect(walk.titles(found)).toHaveLength(6)
  })

  it('of who looks at the noun', () => {
    expect(walk.looker(found)).toContain('In the mean over 200 sentences, encoder head 2·2 gives 93 % of its attention from “it” to the noun that “it” stands for, and 2 % to the other noun. Nouns look at other nouns with 5 %.')
    expect(walk.looker(found)).not.toContain('less than half')
    const weak = changed({ heads: [{ head: looks, shares: shares(0.3, 0.2), right: 180 }] })
    expect(walk.looker(weak)).toContain('30 %')
    expect(walk.looker(weak)).toContain('no encoder head looks mainly at the noun')
    expect(walk.looker({ ...found, encoder: null })).toContain('no attention')
  })

  it('of what the German pronoun reads: the English one, or the noun', () => {
    expect(walk.reader(found)).toContain('encoder–decoder head 1·2 looks at “it” itself: it gives 97 % to “it”, < 1 % to the noun that “it” stands for and < 1 % to the other noun.')
    expect(walk.reader(found)).toContain('the encoder brings the noun to “it”')
    const noun = changed({ heads: [{ head: reads, shares: shares(0.8, 0.1, 0.04), right: 180 }] })
    expect(walk.reader(noun)).toBe('When the German pronoun is about to be written, encoder–decoder head 1·2 gives 80 % to the noun that “it” stands for and 10 % to the other noun, and 4 % to “it” itself.')
    const unresolved = { ...found, encoder: head('encoder', 1, 1) }
    expect(walk.reader(unresolved)).not.toContain('the encoder brings')
    expect(walk.reader({ ...found, cross: null })).toContain('no attention')
  })

  it('of what each head costs', () => {
    const { heads } = found.study
    expect(heads.map((one) => walk.cost(found, one))).toEqual([70, 89, -1, 4, 110])
    expect(heads.map((one) => walk.costs(found, one))).toEqual(['costs 70 pronouns', 'costs 89 pronouns', '1 more right', 'costs 4 pronouns', 'costs 110 pronouns'])
    expect(walk.costs(found, { ...heads[0]!, right: 190 })).toBe('costs nothing')
    expect(heads.map((one) => walk.length(found, one))).toEqual([70 / 190, 89 / 190, 0, 4 / 190, 110 / 190])
    expect(walk.length(changed({ right: 0 }), { ...heads[0]!, right: 0 })).toBe(0)
    expect(heads.map((one) => walk.isSpare(found, one))).toEqual([false, false, true, true, false])
    expect(heads.filter((one) => walk.isSpare(found, one))).toHaveLength(found.study.spare)
    expect(heads.map((one) => walk.isGuess(found, one))).toEqual([true, true, false, false, true])
    expect(walk.costliest(found).head).toEqual(reads)
    expect(walk.priced(found)).toContain('Most is lost without encoder–decoder head 1·2: 80 are right.')
  })

  it('of the smallest set', () => {
    expect(walk.needed(found)).toContain('a guess (at most 60 % right). The smallest set that was found is encoder–decoder head 1·2: without it 80 of 200 are right; always the commonest pronoun would be right in 77.')
    expect(walk.needed(found)).toContain('Switching off encoder head 1·1 alone (120 right) or encoder head 2·2 alone (101 right) does it too.')
    const two = changed({ smallest: { heads: [looks, reads], right: 60 } })
    expect(walk.needed(two)).toContain('is encoder head 2·2 and encoder–decoder head 1·2: without them 60 of 200')
    expect(walk.needed(two)).not.toContain('too.')
    expect(walk.needed(changed({ smallest: null }))).toContain('No such set was found')
    expect(walk.needed(changed({ smallest: { heads: [], right: 90 } }))).toContain('a guess (at most 60 % right) with all heads on')
  })

  it('of what is spare', () => {
    expect(walk.redundancy(found)).toContain('2 of 5 heads cost nothing when they are switched off alone: at most 2 % fewer pronouns are right. One head gives the noun more than 50 % of the pronoun’s attention (encoder head 2·2); without it 101 of 200 are right.')
    expect(walk.redundancy(changed({ without_lookers: { heads: [looks, reads], right: 50 } }))).toContain('2 heads give the noun more than 50 % of the pronoun’s attention (encoder head 2·2 and encoder–decoder head 1·2); without all of them 50 of 200 are right.')
    expect(walk.redundancy(changed({ without_lookers: { heads: [], right: 190 } }))).toContain('No head gives the noun more than 50 %')
  })
})

describe('what the walk shows of the model', () => {
  it('is asked for once for each set of heads', () => {
    expect(walk.sets(found)).toEqual([[], [reads], [looks]])
    expect(walk.sets(changed({ smallest: null, without_lookers: { heads: [], right: 1 } }))).toEqual([[], [reads]])
    expect(walk.asked(3, 'a', [reads])).toMatchObject({ model: 3, snapshot: null, text: 'a', target: null, changes: { off: [['cross', 1, 2]], positions: true, scaling: true, mask: true } })
  })

  it('are the words that look', () => {
    const words = (text: string) => text.split(' ').map((word, at) => [word, [at]] as [string, number[]])
    const read = (german: string) => {
      const values = {
        kinds: { encoder: { queries: 'source', keys: 'source', layers: 1, heads: 1 }, cross: { queries: 'written', keys: 'source', layers: 1, heads: 1 } },
        source: words('The animal slept because it was tired').map(([text]) => ({ text, start: 0, end: 0, special: false })),
        written: words(german).map(([text]) => ({ text, start: 0, end: 0, special: false })),
        words: { source: words('The animal slept because it was tired'), written: words(german) },
      }
      return new Look(unpacked<LookValues>(packed(values)))
    }
    const look = read('Er weiß , weil er schlief , weil es müde war')
    expect(walk.row(found, look, 'encoder')).toBe(4)
    expect(walk.row({ pronoun: 'they' }, look, 'encoder')).toBeNull()
    expect(walk.row(found, look, 'cross')).toBe(8)
    expect(walk.row(found, look, 'decoder')).toBeNull()
    expect(walk.row(found, read('Das Tier schlief'), 'cross')).toBeNull()
    expect(walk.row(found, read('Das Tier schlief , weil'), 'cross')).toBeNull()
  })

  it('is the sharpest head of the encoder, before any was measured', () => {
    const words = (text: string) => text.split(' ').map((word, at) => [word, [at]] as [string, number[]])
    /** Of one layer of two heads: where each looks from “it”. */
    const pass = (text: string, ...given: Record<string, number>[]) => {
      const read = words(text)
      const tokens = read.map(([text]) => ({ text, start: 0, end: 1, special: false }))
      const values = { kinds: { encoder: { queries: 'source', keys: 'source', layers: 1, heads: 2 } }, source: tokens, words: { source: read } } as unknown as LookValues
      const data = new Float32Array(2 * read.length ** 2)
      given.forEach((some, head) => read.forEach(([word], at) => (data[(head * read.length + words(text).findIndex(([one]) => one === 'it')) * read.length + at] = some[word] ?? 0)))
      return new Look({ values, arrays: { 'weights.encoder': { shape: [1, 2, read.length, read.length], data } } } as unknown as Look['payload'])
    }
    const looks = [
      pass('The animal saw the street because it was tired', { animal: 0.9, street: 0.1 }, { animal: 0.6, street: 0.1 }),
      pass('The animal saw the street because it was wide', { animal: 0.8, street: 0.2 }, { animal: 0.25, street: 0.5 }),
    ]
    expect(walk.sharpest(found, looks)).toEqual(head('encoder', 1, 2))
    const seen = walk.looked(found, looks[1]!, head('encoder', 1, 2))!
    expect(seen.row).toBe(6)
    expect(seen.picture.data[seen.row * seen.picture.columns.length + 4]).toBe(0.5)
    expect(walk.looked({ pronoun: 'they' }, looks[0]!, head('encoder', 1, 2))).toBeNull()
    expect(walk.sharpest(found, [])).toBeNull()
  })

  it('has one word that can be exchanged', () => {
    const [tired, wide] = ['it was too tired .', 'it was too wide .'].map((text) => text.split(' ')) as [string[], string[]]
    expect(walk.exchangeable(tired, wide)).toBe(3)
    expect(walk.exchangeable(tired, tired)).toBeNull()
    expect(walk.exchangeable(tired, wide.slice(1))).toBeNull()
    expect(walk.exchangeable(tired, ['it', 'is', 'too', 'wide', '.'])).toBeNull()
  })

  it('changes in the pronoun, or in more', () => {
    const [whole, other, more] = ['Das Tier schlief, weil es müde war.', 'Das Tier schlief, weil sie müde war.', 'Die Tier schlief, weil sie müde war.']
    expect([whole, other, more, 'Das'].map((text) => walk.change(whole, text))).toEqual(['nothing', 'the pronoun', 'more', 'more'])
    expect(walk.change('Das Tier', 'Die Tier')).toBe('more')
    expect(walk.changes([whole, whole], [whole, whole])).toContain('stay as they were')
    expect(walk.changes([whole, whole], [whole, other])).toContain('nothing else')
    expect(walk.changes([whole, whole], [other, more])).toContain('more than the pronoun')
  })

  it('has names', () => {
    expect(walk.listed([])).toBe('')
    expect(walk.listed([looks, reads, head('decoder', 1, 1)])).toBe('encoder head 2·2, encoder–decoder head 1·2 and decoder head 1·1')
    expect(walk.finding(found, null)).toBeNull()
    expect(walk.finding(found, head('encoder', 9, 9))).toBeNull()
    expect(walk.finding(found, looks)?.right).toBe(101)
  })
})
