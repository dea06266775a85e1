/** Asking again and again, while somebody sees the page: slowly where there is nothing to wait for. */

export const PACE = 2000
/** When there is nothing to wait for: a model that is finished may be replaced, or trained on. */
export const SLOW = 15_000

export class Watching {
  #timer: ReturnType<typeof setTimeout> | undefined
  #running: AbortController | undefined

  /**
   * `ask` says whether there is something to wait for; errors are its own affair.
   */
  constructor(
    readonly ask: (signal: AbortSignal) => Promise<boolean>,
    readonly hidden: () => boolean = () => document.hidden,
    readonly pace = PACE,
    readonly slow = SLOW,
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
    const waits = await this.ask(running.signal)
    if (running.signal.aborted) return
    this.#running = undefined
    if (!this.hidden()) this.#timer = setTimeout(() => this.now(), waits ? this.pace : this.slow)
  }
}
