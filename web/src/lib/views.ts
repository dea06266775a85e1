/** The views there are, and which of them a model has something for. */

import type { Model } from './types'

export const VIEWS = [
  ['walk', 'Walk'],
  ['heads', 'Heads'],
  ['figure', 'Figure 1'],
  ['sheet', 'Every head'],
  ['equation', 'Equation'],
  ['writing', 'Writing'],
  ['positions', 'Positions'],
  ['words', 'Words'],
  ['dictionary', 'Soft dictionary'],
  ['compare', 'Compare'],
  ['without', 'Without'],
  ['training', 'Training'],
] as const
export type View = (typeof VIEWS)[number][0]

type Given = Pick<Model, 'kinds' | 'writes' | 'stacks' | 'family' | 'sides' | 'course' | 'walk' | 'classic' | 'without'>

export function isView(name: string | undefined): name is View {
  return VIEWS.some(([view]) => view === name)
}

export function attends({ kinds }: Pick<Model, 'kinds'>): boolean {
  return Object.keys(kinds).length > 0
}

export function possible(view: View, model: Given): boolean {
  if (view === 'walk') return Boolean(model.walk ?? model.classic)
  if (view === 'writing') return model.writes === 'text' || model.writes === 'continuation' || model.writes === 'words'
  if (view === 'positions') return model.stacks.length > 0
  if (view === 'figure') return model.family !== ''
  if (view === 'words') return model.sides.length > 0
  if (view === 'training') return model.course
  if (view === 'without') return Boolean(model.without)
  return view === 'dictionary' || attends(model)
}

/** The view that is shown where another is wanted: that, or the first the model has. */
export function nearest(view: View, model: Given): View {
  return possible(view, model) ? view : VIEWS.find(([one]) => possible(one, model))![0]
}

/** Whether a view shows the model at work, for which there must be weights. */
export function weighs(view: View): boolean {
  return view !== 'dictionary' && view !== 'training' && view !== 'without'
}

/** Whether a view is of the text that is typed. */
export function reads(view: View): boolean {
  return looks(view) || view === 'positions' || view === 'words'
}

/** Whether a view shows what the model made of what it read, and nothing else. */
export function looks(view: View): boolean {
  return view === 'figure' || view === 'heads' || view === 'sheet' || view === 'equation' || view === 'writing' || view === 'compare'
}
