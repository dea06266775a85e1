import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Watching } from '../src/lib/watching'

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

function watch(...answers: boolean[]) {
  const seen = { times: 0, hidden: false }
  const watching = new Watching(
    async () => answers[seen.times++] ?? true,
    () => seen.hidden,
    2000,
    15_000,
  )
  return { seen, watching }
}

describe('asking again and again', () => {
  it('is slow when there is nothing to wait for, and quick again when there is', async () => {
    const { seen, watching } = watch(true, true, false, true)
    watching.now()
    await vi.advanceTimersByTimeAsync(1999)
    expect(seen.times).toBe(1)
    await vi.advanceTimersByTimeAsync(2001)
    expect(seen.times).toBe(3)
    await vi.advanceTimersByTimeAsync(14_999)
    expect(seen.times).toBe(3)
    await vi.advanceTimersByTimeAsync(1)
    expect(seen.times).toBe(4)
    await vi.advanceTimersByTimeAsync(2000)
    expect(seen.times).toBe(5)
  })

  it('rests while nobody sees the page, and asks at once when somebody does', async () => {
    const { seen, watching } = watch()
    watching.now()
    await vi.advanceTimersByTimeAsync(1000)
    seen.hidden = true
    watching.turned()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(seen.times).toBe(1)
    seen.hidden = false
    watching.turned()
    await vi.advanceTimersByTimeAsync(0)
    expect(seen.times).toBe(2)
    await vi.advanceTimersByTimeAsync(2000)
    expect(seen.times).toBe(3)
  })

  it('does not ask twice at once, and not after its end', async () => {
    let answer = (_: boolean) => {}
    let [times, left] = [0, false]
    const watching = new Watching(
      (signal) => {
        times++
        signal.addEventListener('abort', () => (left = true))
        return new Promise((give) => (answer = give))
      },
      () => false,
    )
    watching.now()
    watching.now()
    expect(times).toBe(1)
    watching.stop()
    expect(left).toBe(true)
    answer(true)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(times).toBe(1)
  })
})
