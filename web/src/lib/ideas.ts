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

/** What is taken out, by idea, in the paper's order; and what three seeds have shown (docs/without.md). */
export const IDEAS: Record<string, [name: string, told: string, seen: string]> = {
  positions: ['Positions', 'Nothing is added to the embeddings: no sinusoids say where in the sentence a word stands.', 'About half of the sentences still come out. In the outputs shown, adjectives have changed their noun.'],
  attention: ['Attention', 'Every query is zero. All scores are equal, and each head gives the plain mean of the values that it may see.', 'Less than half of the sentences come out, and about half of the pronouns are right.'],
  scale: ['√d_k', 'Scores are not divided by √d_k. The weights begin as those of the whole model.', 'Each head looks at one or two tokens from the first step on, as the entropy of attention says, and most sentences are wrong.'],
  heads: ['Several heads', 'Each layer of the decoder has one head with all entries in place of four. (The encoder’s layers have one in either model.)', 'One head is enough here, but for a few sentences in a hundred.'],
  mask: ['The mask', 'While it learns, each target token also sees those behind it, and among them the one that it must predict. When it writes, there are none yet.', 'The loss is lower than that of the whole model, and not one sentence comes out: it learned to read the answer.'],
  residual: ['The residual', 'The output of a sub-layer is not added to what entered it, but replaces it.', 'Almost nothing is learned. At first hardly any gradient reaches the first layer of the decoder.'],
  norm: ['The norm', 'Nothing is normalised, neither before a sub-layer nor after the last.', 'Gradients are several times larger at first. Most sentences still come out; the model has two layers only.'],
  'feed-forward': ['Feed-forward', 'Layers have attention only: the two linear layers and the ReLU between them are gone.', 'With little more than half of the parameters nearly as many sentences come out.'],
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
