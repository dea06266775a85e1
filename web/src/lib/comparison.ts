/** What two panes may differ in. */

import { changed } from './link'
import type { Pane } from './pane.svelte'
import type { Model } from './types'

export type Comparison = 'sentences' | 'checkpoints' | 'models' | 'changes'

type Given = Pick<Pane, 'text' | 'snapshot' | 'changes'> & { model: Pick<Model, 'number'> }

/** What they differ in, the largest first. */
export function comparison(first: Given, second: Given): Comparison {
  if (first.model.number !== second.model.number) return 'models'
  if (first.snapshot !== second.snapshot) return 'checkpoints'
  if (first.text === second.text && (changed(first.changes) || changed(second.changes))) return 'changes'
  return 'sentences'
}

/** Models that can stand beside one: with attention, and of the same sort of input. */
export function beside(model: Model, models: readonly Model[]): Model[] {
  const image = (one: Model) => one.reads === 'image'
  return models.filter((one) => one.number !== model.number && one.ready && Object.keys(one.kinds).length > 0 && image(one) === image(model))
}
