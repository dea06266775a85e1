import { expect, it } from 'vitest'
import { likely } from '../src/lib/order'
import { powers } from '../src/lib/powers'
import { chance } from '../src/lib/steps'

it('a number in powers of ten is taken apart', () => {
  expect(powers(chance(1.2e-7))).toEqual(['1.2 × 10', '−7', ''])
  expect(powers(likely(Math.log(7.7e-22)))).toEqual(['7.7 × 10', '−20', ' %'])
  expect(powers('3.2e12')).toEqual(['3.2 × 10', '12', ''])
})

it('others stay as they are', () => {
  for (const text of ['35 %', '0.15 %', '< 1 %', 'the 10 %']) expect(powers(text)).toEqual([text, '', ''])
})
