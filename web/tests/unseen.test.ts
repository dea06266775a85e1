import { expect, test } from 'vitest'
import { marked, unsure } from '../src/lib/unseen'

test('the parts join to the text, and the words that training never saw are marked', () => {
  const parts = marked('The zebra 🦓 likes quokkas.', [['zebra', 4, 9], ['quokkas', 18, 25]])
  expect(parts.map(({ text }) => text).join('')).toBe('The zebra 🦓 likes quokkas.')
  expect(parts.filter(({ never }) => never).map(({ text }) => text)).toEqual(['zebra', 'quokkas'])
})

test('a text without such words is one part', () => {
  expect(marked('A man', [])).toEqual([{ text: 'A man', never: false }])
  expect(marked('', [])).toEqual([])
})

test('a demonstration is unsure of an output whose tokens are improbable together', () => {
  expect(unsure([0.93, 0.95, 0.5])).toBe(false)
  expect(unsure([0.93, 0.95, 0.05, null])).toBe(true)
  expect(unsure([])).toBe(false)
})
