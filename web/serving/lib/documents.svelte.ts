/** Documents that are translated on the server. */

import { sentence } from '../../src/lib/errors'
import { Refused, job, remove, result, sendDocument } from './api'
import type { Job, JobName, Term } from './types'

const EVERY = 1000
const STORED = 'regard.documents'

interface Kept {
  file: string
  name: JobName
}

export class Documents {
  all = $state<Document[]>([])
  #last = 0

  /** Those of this tab, when the page is opened again. */
  again(): void {
    let kept: Kept[] = []
    try {
      kept = JSON.parse(sessionStorage.getItem(STORED) ?? '[]') as Kept[]
    } catch {
      // storage may be forbidden; then documents are known as long as the page
    }
    for (const { file, name } of kept) {
      const one = this.#made(file)
      void one.send(async () => name)
    }
  }

  #made(file: string): Document {
    const one = new Document(++this.#last, file, () => this.#keep())
    this.all.push(one)
    return one
  }

  #keep(): void {
    const kept = this.all.flatMap(({ file, name }): Kept[] => (name ? [{ file, name }] : []))
    try {
      sessionStorage.setItem(STORED, JSON.stringify(kept))
    } catch {
      // as above
    }
  }

  /** Send them, each on its own. */
  add(files: Iterable<File>, most: number, source: string | null, target: string, terms: Term[]): void {
    for (const file of files) {
      const one = this.#made(file.name)
      if (file.size > most) one.problem = `This is larger than the ${size(most)} that the server takes.`
      else void one.send(() => sendDocument(file, source, target, terms))
    }
  }

  remove(one: Document): void {
    one.end()
    this.all = this.all.filter(({ number }) => number !== one.number)
    this.#keep()
  }
}

export class Document {
  job = $state.raw<Job | null>(null)
  problem = $state<string | null>(null)
  name: JobName | null = null
  #timer: ReturnType<typeof setTimeout> | undefined
  #ended = false

  constructor(
    readonly number: number,
    readonly file: string,
    readonly named: () => void,
  ) {}

  async send(sent: () => Promise<JobName>): Promise<void> {
    await this.#trying(async () => {
      const name = await sent()
      if (this.#ended) return void remove(name).catch(() => {})
      this.name = name
      this.named()
      await this.#look()
    }, () => this.send(sent))
  }

  async #look(): Promise<void> {
    await this.#trying(async () => {
      this.job = await job(this.name!)
      if (this.job.status === 'queued' || this.job.status === 'translating') this.#later(() => this.#look(), EVERY)
    }, () => this.#look())
  }

  async save(): Promise<void> {
    await this.#trying(async () => {
      const link = document.createElement('a')
      link.href = URL.createObjectURL(await result(this.name!))
      link.download = this.job!.name
      link.click()
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
    }, () => this.save())
  }

  /** Neither is it asked for any more, nor is it kept on the server. */
  end(): void {
    this.#ended = true
    clearTimeout(this.#timer)
    if (this.name) remove(this.name).catch(() => {})
  }

  async #trying(work: () => Promise<void>, again: () => Promise<void>): Promise<void> {
    try {
      await work()
      this.problem = null
    } catch (error) {
      this.problem = error instanceof Refused ? error.message : String(error)
      if (error instanceof Refused && error.again !== null) this.#later(again, error.again * 1000)
    }
  }

  #later(work: () => Promise<void>, wait: number): void {
    if (!this.#ended) this.#timer = setTimeout(() => void work(), wait)
  }
}

export function size(bytes: number): string {
  return bytes < 1e6 ? `${Math.floor(bytes / 1e3)} kB` : `${Math.floor(bytes / 1e6)} MB`
}

/** What becomes of it, in words. */
export function state({ status, done, segments, seconds, error }: Job): string {
  if (status === 'queued') return 'Waits for its turn'
  if (status === 'done') return 'Translated'
  if (status === 'error') return sentence(error ?? 'it could not be translated')
  const left = seconds === null ? '' : `, about ${seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / 60)} min`} more`
  return segments ? `${done} of ${segments} segments${left}` : 'Is read'
}
