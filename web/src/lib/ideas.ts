/** The demonstration's model without one idea of the paper, as it was measured (regard/runs/demo/without.py). */

import { layerName } from './course'

export interface Measured {
  seed: number
  steps: number
  parameters: number
  /** Step and validation loss. */
  curve: [number, number][]
  layers: string[]
  /** Step, and the gradient's norm of each layer. */
  norms: [number, number[]][]
  diverged: string | null
  scores: { exact: number; bleu: number; pronoun: { correct: number; total: number } } | null
  /** Bits of each use and layer, before and after training. */
  entropy: Record<string, [number, number]> | null
  written: string[]
}

export interface Comparison {
  sources: string[]
  references: string[]
  models: Record<string, Measured>
}

/** What is taken out, by idea, in the paper's order. */
export const IDEAS: Record<string, [name: string, told: string]> = {
  positions: ['Positions', 'Nothing is added to the embeddings: no sinusoids say where in the sentence a word stands.'],
  attention: ['Attention', 'Every query is zero. All scores are equal, and each head gives the plain mean of the values that it may see.'],
  scale: ['√d_k', 'Scores are not divided by √d_k. The weights begin as those of the whole model.'],
  heads: ['Several heads', 'Each layer of the decoder has one head with all entries in place of four. (The encoder’s layers have one in either model.)'],
  mask: ['The mask', 'While it learns, each target token also sees those behind it, and among them the one that it must predict. When it writes, there are none yet. So its loss is low, and no measure of what it writes.'],
  residual: ['The residual', 'The output of a sub-layer is not added to what entered it, but replaces it.'],
  norm: ['The norm', 'Nothing is normalised, neither before a sub-layer nor after the last.'],
  'feed-forward': ['Feed-forward', 'Layers have attention only: the two linear layers and the ReLU between them are gone.'],
}

/** The ideas that were measured, in the paper's order. */
export function measured({ models }: Comparison): string[] {
  return Object.keys(IDEAS).filter((idea) => idea in models)
}

export interface Norms {
  step: number
  /** Layer, and the norm with and without; null: not measured. */
  rows: [name: string, whole: number | null, without: number | null][]
}

/** The gradient's norm of each layer wherever both were measured. */
export function norms(whole: Measured, without: Measured): Norms[] {
  const others = new Map(without.norms)
  const of = ({ layers }: Measured, some: number[], name: string) => some[layers.indexOf(name)] ?? null
  return whole.norms
    .filter(([step]) => others.has(step))
    .map(([step, some]) => ({
      step,
      rows: whole.layers.map((name) => [layerName(name, whole.layers), of(whole, some, name), of(without, others.get(step)!, name)]),
    }))
}

/** The least and largest number, for an axis of powers. */
export function extent(all: readonly Norms[]): [number, number] {
  const some = all.flatMap(({ rows }) => rows.flatMap(([, ...two]) => two)).filter((one) => one !== null && one > 0) as number[]
  return some.length ? [Math.min(...some), Math.max(...some)] : [0.1, 1]
}

/** From 0 to 1 where a number lies on an axis of powers. */
export function along(value: number, [least, largest]: readonly [number, number]): number {
  if (!(value > 0) || least === largest) return 0
  return Math.log(value / least) / Math.log(largest / least)
}

/** The least validation loss. */
export function best({ curve }: Measured): number | null {
  return curve.length ? Math.min(...curve.map(([, loss]) => loss)) : null
}
