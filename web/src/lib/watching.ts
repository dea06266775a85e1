/** Asking again and again: while there is something to wait for, and somebody who sees the page. */

export const PACE = 2000

export class Watching {
  #timer: ReturnType<typeof setTimeout> | undefined
  #running: AbortController | undefined

  /**
   * `ask` says whether there is more to wait for; errors are its own affair.
   */
  constructor(
    readonly ask: (signal: AbortSignal) => Promise<boolean>,
    readonly hidden: () => boolean = () => document.hidden,
    readonly pace = PACE,
  ) {}

  /** Ask at once, unless an answer is under way. */
  now(): void {
    clearTimeout(this.#timer)
    if (!this.#running) void this.#run((this.#running = new AbortController()))
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#running?.abort()
    this.#running = undefined
  }

  /** The page is seen again, or is not any more. */
  turned(): void {
    if (this.hidden()) clearTimeout(this.#timer)
    else this.now()
  }

  async #run(running: AbortController): Promise<void> {
    const more = await this.ask(running.signal)
    if (running.signal.aborted) return
    this.#running = undefined
    if (more && !this.hidden()) this.#timer = setTimeout(() => this.now(), this.pace)
  }
}
