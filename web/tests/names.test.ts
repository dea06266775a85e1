import { describe, expect, it } from 'vitest'
import { capital, headName, headSpelled, manner, quoted, searchName, shownName } from '../src/lib/names'
import { spot } from '../src/lib/pieces'

describe('a head', () => {
  it('has one name everywhere, and can be spelled', () => {
    expect(headName('cross', 2, 1)).toBe('encoder–decoder head 2·1')
    expect(shownName({ kind: 'cross', merge: 'head', layer: 2, head: 1 })).toBe(headName('cross', 2, 1))
    expect(headSpelled(2, 1)).toBe('layer 2, head 1')
    expect(capital(headName('encoder', 1, 3))).toBe('Encoder head 1·3')
  })

  it('may be many', () => {
    const many = (merge: 'mean' | 'max' | 'rollout', layer: number | null) => shownName({ kind: 'encoder', merge, layer, head: 1 })
    expect([many('mean', null), many('max', 2)]).toEqual(['mean over all encoder heads', 'maximum over the encoder heads of layer 2'])
    expect([many('rollout', null), many('rollout', 1)]).toEqual(['rollout through all encoder layers', 'rollout up to encoder layer 1'])
  })
})

describe('what was written', () => {
  it('was written greedily, or was forced; and by a search with a beam', () => {
    expect([manner('text', false), manner('continuation', false), manner('text', true), manner('classes', false)]).toEqual(['greedily', 'greedily', 'as it was made to', ''])
    expect([1, 4].map(searchName)).toEqual(['the greedy search', 'the search with a beam of 4'])
  })
})

describe('a place of an image', () => {
  it('is said in words', () => {
    expect(['class', '2,13', 'a,b', '1,2,3'].map(spot)).toEqual(['the class token', 'the patch in row 2, column 13', 'a,b', '1,2,3'])
  })
})

describe('a word of a model that has learned little', () => {
  it('is cut in a sentence', () => {
    const word = 'Ein'.repeat(100)
    expect(quoted({ text: word, name: word })).toBe('“EinEinEinEinEinE…nEin”')
    expect(quoted({ text: 'Straße', name: 'Straße' })).toBe('“Straße”')
  })
})
