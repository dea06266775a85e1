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
  )
  return { seen, watching }
}

describe('asking again and again', () => {
  it('ends when there is nothing more to wait for', async () => {
    const { seen, watching } = watch(true, true, false)
    watching.now()
    await vi.advanceTimersByTimeAsync(1999)
    expect(seen.times).toBe(1)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(seen.times).toBe(3)
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
