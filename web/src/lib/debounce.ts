/** One thing at a time: a new one waits a moment, and makes the one before it stop. */
export class Latest {
  #timer: ReturnType<typeof setTimeout> | undefined
  #running: AbortController | undefined

  constructor(readonly wait = 150) {}

  run(work: (signal: AbortSignal) => Promise<void>, wait = this.wait): void {
    this.stop()
    this.#timer = setTimeout(() => {
      this.#running = new AbortController()
      void work(this.#running.signal)
    }, wait)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#running?.abort()
  }
}
