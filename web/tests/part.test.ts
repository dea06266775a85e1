import { expect, it } from 'vitest'
import { seen, tokens } from '../src/lib/part'

const part = { text: 'a', number: 2, count: 1200, first: 65, last: 1128, total: 28400 }

it('says which tokens are seen of how many', () => {
  expect(tokens(part)).toBe('tokens 65–1,128 of 28,400')
  expect(seen(part)).toBe('part 2 of 1,200 of the text, tokens 65–1,128 of 28,400')
})
