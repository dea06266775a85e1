/** Which of its weights a model is shown with. */

import { count } from './numbers'
import type { Model } from './types'

type Given = Pick<Model, 'ready' | 'running' | 'keeps'>

/** The weights a model folder holds, which change while a training goes on; or those kept at a moment. */
export function weightsName(model: Given, snapshot: string | null): string {
  if (snapshot !== null) return snapshot
  if (!model.ready) return 'not there yet'
  return model.running ? `${model.keeps} so far` : 'finished'
}

/** What is told of the step that a folder's weights are of. */
export function weightsStep(model: Given, step: number): string {
  const so = model.running ? 'so far ' : ''
  return `Its weights are those of step ${count(step)}, ${model.keeps === 'newest' ? `the newest ${so}that were tested` : `the best ${so}when they were tested`}`
}
