/** What ← and → go through in a classroom: the steps of the walk, then the views in the order of the course. */

import type { Model } from './types'
import { possible, VIEWS, type View } from './views'
import { titles } from './walk'

/** As docs/course/index.md comes to them. */
export const COURSE: readonly View[] = ['walk', 'heads', 'dictionary', 'equation', 'sheet', 'positions', 'figure', 'words', 'writing', 'compare', 'without', 'training']

export interface Stop {
  view: View
  /** Of the walk, from 1. */
  step: number
  name: string
}

export function stops(model: Model): Stop[] {
  const names = (view: View) => (view === 'walk' ? titles(model.walk ?? model.classic!, Boolean(model.walk)) : [VIEWS.find(([one]) => one === view)![1]])
  return COURSE.filter((view) => possible(view, model)).flatMap((view) => names(view).map((name, at) => ({ view, step: at + 1, name })))
}

/** Where one is among them. */
export function stopAt(all: readonly Stop[], view: View, step: number): number {
  const first = all.findIndex((one) => one.view === view)
  return view === 'walk' ? Math.min(first + step - 1, all.findLastIndex((one) => one.view === view)) : first
}
