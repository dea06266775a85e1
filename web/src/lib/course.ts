/** A training as its log tells it (regard/inspection/folders/training_curves.py). */

import { round } from './axis'
import { count, duration, number } from './numbers'
import type { Payload } from './payload'
import type { Model } from './types'

export interface Validation {
  step: number
  seconds: number
  loss: number
  best: boolean
  [score: string]: number | boolean | null
}

export interface Sample {
  step: number
  source: string
  reference: string
  hypothesis: string
}

export interface CourseValues {
  planned: number | null
  running: boolean
  /** Whether the log was read to its end: of a long one some is read at a time. */
  whole: boolean
  valid: Validation[]
  samples: Sample[]
  norms: { steps: number[]; names: string[] }
}

export type Course = Payload<CourseValues>

/** Whether there is more to come: the training goes on, or the rest of its log. */
export function grows({ running, whole }: Pick<CourseValues, 'running' | 'whole'>): boolean {
  return running || !whole
}

/** What is on the lower axis. */
export type Over = 'steps' | 'time'

export interface Unit {
  name: 'seconds' | 'minutes' | 'hours'
  seconds: number
}

const SCORES: Record<string, string> = { bleu: 'BLEU', chrf: 'chrF', exact: 'exact match', f1: 'F1' }
const NO_SCORES = ['step', 'seconds', 'loss', 'best']

export function column({ arrays }: Course, name: string): Float32Array {
  return (arrays[name]?.data ?? new Float32Array(0)) as Float32Array
}

/** The names of what validations measured beside the loss; the first is what weights are judged by. */
export function scores({ values }: Course): string[] {
  const found = values.valid.flatMap((one) => Object.keys(one).filter((name) => !NO_SCORES.includes(name) && typeof one[name] === 'number'))
  return [...new Set(found)]
}

export function scoreName(name: string): string {
  return SCORES[name] ?? name.replaceAll('_', ' ')
}

/** What a gradient is of: layers count from 1. */
export function layerName(name: string, names: readonly string[]): string {
  const layer = /^(.*)\.layers\.(\d+)$/.exec(name)
  if (layer) return `${layer[1]!.replaceAll(/[._]/g, ' ')} ${Number(layer[2]) + 1}`
  const plain = name.replaceAll(/[._]/g, ' ')
  return names.some((other) => other.startsWith(`${name}.layers.`)) ? `${plain}, rest` : plain
}

/**
 * The last update that was made. The points of a course are means of equally many updates, but for the last, which may
 * be of fewer.
 */
export function lastStep(course: Course): number {
  const steps = column(course, 'step')
  if (steps.length < 2) return steps[0] ?? 0
  const each = steps[1]! - steps[0]!
  const first = steps[0]! - (each - 1) / 2
  const begin = first + (steps.length - 1) * each
  return Math.max(Math.round(2 * steps.at(-1)! - begin), course.values.valid.at(-1)?.step ?? 0)
}

/** The seconds that what is still to come takes, if it goes on as lately; null where that cannot be said. */
export function left(course: Course): number | null {
  const [steps, seconds] = [column(course, 'step'), column(course, 'seconds')]
  const { planned } = course.values
  if (planned === null || steps.length < 2) return null
  const from = Math.min(steps.length - 2, Math.floor(steps.length * 0.8))
  const pace = (seconds.at(-1)! - seconds[from]!) / (steps.at(-1)! - steps[from]!)
  return Number.isFinite(pace) ? Math.max(0, planned - lastStep(course)) * pace : null
}

export function about(seconds: number): string {
  if (seconds < 45) return 'less than a minute'
  const minutes = Math.round(seconds / 60)
  if (minutes < 90) return minutes <= 1 ? 'about a minute' : `about ${minutes} minutes`
  return `about ${Math.round(seconds / 1800) / 2} hours`
}

/** How far it is, in a line. */
export function progress(course: Course): string {
  const { planned, running, valid } = course.values
  const last = lastStep(course)
  const seconds = Math.max(column(course, 'seconds').at(-1) ?? 0, valid.at(-1)?.seconds ?? 0)
  const of = planned === null ? '' : ` of ${count(planned)}`
  if (running) {
    const rest = left(course)
    if (!last) return 'training: no step is made yet'
    return `training: step ${count(last)}${of}${rest === null ? `, for ${duration(seconds)}` : `, ${about(rest)} left`}`
  }
  if (planned !== null && last < planned) return `ended at step ${count(last)}${of}, after ${duration(seconds)}`
  return `${count(last)} steps in ${duration(seconds)}`
}

/** Several things in a row. */
function listed(things: readonly string[]): string {
  return things.length < 2 ? things.join('') : `${things.slice(0, -1).join(', ')} and ${things.at(-1)}`
}

/** Why the losses of training and of validation are not alike; null: both are measured alike. */
export function apart({ label_smoothing: smoothing, dropout, adversarial }: Model['harder']): string | null {
  const counts = [
    ...(smoothing ? [`label smoothing (${number(smoothing)} of the probability is to be given to what is not right)`] : []),
    ...(dropout ? [`dropout (${number(dropout)} of the numbers on their way are set to zero by chance)`] : []),
    ...(adversarial ? [`for one half what is lost when embeddings are moved the way that hurts most (by ${number(adversarial)} lengths of one)`] : []),
  ]
  if (!counts.length) return null
  return `The loss of training counts ${listed(counts)}; that of validation counts ${['none', 'neither', 'nothing of the kind'][counts.length - 1]}, so it may well be lower: compare each with itself.`
}

export function unit(seconds: number): Unit {
  if (seconds < 180) return { name: 'seconds', seconds: 1 }
  return seconds < 3 * 3600 ? { name: 'minutes', seconds: 60 } : { name: 'hours', seconds: 3600 }
}

/** Where the lower axis ends: with the run; while it goes on, further, so that new points come without moving the others. */
export function end(last: number, running: boolean, most: number | null): number {
  if (!running) return last
  const some = round(Math.max(last, 1) * 1.02)
  return most === null ? some : Math.min(some, Math.max(most, last))
}

/** The seconds at a step, by those that are known next to it. */
export function secondsAt(course: Course, step: number): number {
  const [steps, seconds] = [column(course, 'step'), column(course, 'seconds')]
  const at = nearest(steps, step)
  if (at < 0) return 0
  const beside = steps[at]! < step ? [at + 1, at - 1] : [at - 1, at + 1]
  const to = beside.find((other) => other >= 0 && other < steps.length) ?? at
  if (steps[to] === steps[at]) return seconds[at]!
  return Math.max(0, seconds[at]! + ((step - steps[at]!) / (steps[to]! - steps[at]!)) * (seconds[to]! - seconds[at]!))
}

/** The place of the number next to another, among numbers that rise; -1: there are none. */
export function nearest(rising: ArrayLike<number>, value: number): number {
  let [low, high] = [0, rising.length - 1]
  while (low < high) {
    const middle = (low + high) >> 1
    if (rising[middle]! < value) low = middle + 1
    else high = middle
  }
  return low > 0 && value - rising[low - 1]! <= rising[low]! - value ? low - 1 : high
}

export interface Outcome {
  step: number
  valid: Validation | null
  samples: { source: string; reference: string; hypothesis: string; before: string | null }[]
}

/** What the model wrote at each validation, and what it had written of the same at the one before. */
export function outcomes({ values }: Course): Outcome[] {
  const found: Outcome[] = []
  let before = new Map<string, string>()
  let now = new Map<string, string>()
  for (const { step, source, reference, hypothesis } of values.samples) {
    if (found.at(-1)?.step !== step) {
      ;[before, now] = [now, new Map()]
      found.push({ step, valid: values.valid.find((one) => one.step === step) ?? null, samples: [] })
    }
    now.set(source, hypothesis)
    found.at(-1)!.samples.push({ source, reference, hypothesis, before: before.get(source) ?? null })
  }
  return found
}
