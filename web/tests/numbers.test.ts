import { describe, expect, it } from 'vitest'
import { apart, count, duration, number, percent, times, unbroken, weight } from '../src/lib/numbers'
import { chance } from '../src/lib/steps'

describe('numbers as people read them', () => {
  it('weights keep a digit that says something', () => {
    expect([0, 1, 0.826, 0.0042, 0.0001].map(weight)).toEqual(['0.00', '1.00', '0.83', '0.004', '< 0.001'])
  })
  it('percents never claim all or nothing', () => {
    expect([0, 1, 0.996, 0.003, 0.826].map((one) => percent(one))).toEqual(['0 %', '100 %', '> 99 %', '< 1 %', '83 %'])
  })
  it('two are told apart by as few digits as can', () => {
    const two = (one: number, other: number) => apart(one, other, chance)
    expect(two(0.94, 0.51)).toEqual(['94 %', '51 %'])
    expect(two(0.0149, 0.0051)).toEqual(['1.5 %', '0.5 %'])
    expect(two(0.994, 0.9906)).toEqual(['99.4 %', '99.1 %'])
    expect([two(0.996, 0.999), two(0.99993, 0.99998)]).toEqual([['99.6 %', '99.9 %'], ['99.99 %', '> 99.99 %']])
    expect([two(0.00032, 0.00034), two(1.21e-7, 1.24e-7)]).toEqual([['0.032 %', '0.034 %'], ['1.21e−7', '1.24e−7']])
    expect(two(0.5, 0.5)).toEqual(['50 %', '50 %'])
    expect(apart(3.001, 3.1, (value, more) => number(value, 2 + more))).toEqual(['3.0', '3.1'])
  })
  it('one beside another in two digits', () => {
    expect([times(0.94, 0.5), times(0.94, 0.05), times(0.93, 0.0006), times(1, 1e-8), times(1, 0)]).toEqual(['1.9 times', '19 times', '1,600 times', '1.0e8 times', 'infinitely many times'])
  })
  it('and their signs are not parted', () => {
    expect(unbroken('falls from > 99 % to 3 % or more')).toBe('falls from >\u00a099\u00a0% to 3\u00a0% or more')
  })
  it('any size in few digits', () => {
    expect([0, 12345, 12.345, -0.0821, 3.2e8, 0.000012, -Infinity, NaN].map((value) => number(value))).toEqual(['0.00', '12,345', '12.3', '−0.082', '3.2e8', '1.2e−5', '−∞', '–'])
  })
  it('counts and durations', () => {
    expect(count(1234567)).toBe('1,234,567')
    expect([59.6, 61, 3725].map(duration)).toEqual(['1:00', '1:01', '1:02:05'])
  })
})
