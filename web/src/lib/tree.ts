/** A search as a tree that grows to the right: where its tokens stand, and what became of each. */

import { behind } from './pieces'

export interface Node {
  step: number
  /** -1: it is the first token. */
  parent: number
  id: number
  piece: string
  probability: number
  log_probability: number
  fate: 'live' | 'finished' | 'left'
  others: [string, number][]
}

export interface Hypothesis {
  text: string
  score: number
  finished: boolean
  /** Numbers of nodes, the first token first. */
  branch: number[]
}

export interface Search {
  nodes: Node[]
  hypotheses: Hypothesis[]
  length_penalty: number
}

export interface Layout {
  /** By node, from 0 at the top. */
  row: number[]
  rows: number
  /** Of the longest branch. */
  steps: number
  /** By node, from the one that leads furthest. */
  children: number[][]
  /** First tokens, likewise. */
  roots: number[]
  /** By step, from 1: the nodes from top to bottom. */
  columns: number[][]
  /** By node: the best hypothesis it leads to, from 0; Infinity: it was given up. */
  leads: number[]
}

/** Rows beyond those of the fullest step, so that branches need not move at once where another ends or begins. */
const SPARE = 1

/** No two branches cross; the best stands on top, and each goes on straight as far as those above and below let it. */
export function layout({ nodes, hypotheses }: Search): Layout {
  const leads = nodes.map(() => Infinity)
  hypotheses.forEach(({ branch }, rank) => {
    for (const one of branch) leads[one] = Math.min(leads[one]!, rank)
  })
  const children: number[][] = nodes.map(() => [])
  const roots: number[] = []
  nodes.forEach(({ parent }, one) => (parent < 0 ? roots : children[parent]!).push(one))
  const before = (a: number, b: number) =>
    (leads[a]! === leads[b]! ? 0 : leads[a]! - leads[b]!) || nodes[b]!.log_probability - nodes[a]!.log_probability
  for (const some of [...children, roots]) some.sort(before)

  const columns: number[][] = [[]]
  for (let some = roots; some.length; some = some.flatMap((one) => children[one]!)) columns.push(some)
  const fullest = columns.reduce((most, some) => Math.max(most, some.length), 0)
  const room = fullest + (fullest > 1 ? SPARE : 0)
  const row = nodes.map(() => 0)
  for (const some of columns)
    some.forEach((one, at) => {
      const { parent } = nodes[one]!
      const straight = parent < 0 ? at : row[parent]!
      const above = at ? row[some[at - 1]!]! + 1 : 0
      row[one] = Math.min(Math.max(straight, above), room - (some.length - at))
    })
  const rows = row.reduce((most, one) => Math.max(most, one + 1), 0)
  return { row, rows, steps: columns.length - 1, children, roots, columns, leads }
}

/** The nodes from the first token to this one. */
export function path(nodes: readonly Node[], last: number): number[] {
  const found: number[] = []
  for (let one = last; one >= 0; one = nodes[one]!.parent) found.unshift(one)
  return found
}

/** What each node is called behind the one before it; the first stand behind what was given, if anything was. */
export function names(nodes: readonly Node[], given: string | null): string[] {
  return nodes.map(({ piece, parent }) => behind(parent < 0 ? given : nodes[parent]!.piece, piece))
}

/** By node: the score of the output that ends there. */
export function scores({ nodes, hypotheses }: Search): (number | null)[] {
  const found: (number | null)[] = nodes.map(() => null)
  for (const { branch, score } of hypotheses) found[branch.at(-1)!] = score
  return found
}

export type End = 'output' | 'open' | 'dot' | 'bar'

/** By node: the sign at its end; null: it went on. */
export function ends({ nodes, hypotheses }: Search): (End | null)[] {
  const last = new Map(hypotheses.map(({ branch, finished }) => [branch.at(-1)!, finished]))
  return nodes.map(({ fate }, one) => {
    if (fate === 'live') return null
    if (last.has(one)) return fate === 'finished' ? 'output' : 'open'
    return fate === 'finished' ? 'dot' : 'bar'
  })
}

/** What a log-probability is divided by: `((5 + length) / 6)^alpha`, `</s>` counted. */
export function penalty(length: number, alpha: number): number {
  return ((5 + length) / 6) ** alpha
}

/** What became of a prefix, in words. */
export function fate({ nodes, hypotheses }: Search, { leads, children }: Layout, one: number): string {
  const { fate } = nodes[one]!
  const rank = leads[one]!
  const ends = Number.isFinite(rank) && hypotheses[rank]!.branch.at(-1) === one
  if (fate === 'finished') return ends ? `finished: output ${rank + 1}` : 'finished, but others are better'
  if (ends) return `cut off: output ${rank + 1}`
  if (Number.isFinite(rank)) return `kept: leads to output ${rank + 1}`
  if (fate === 'left') return 'given up'
  return children[one]!.length ? 'kept for a while: all that it led to was given up' : 'given up: at the next step others were better'
}

/** The node an arrow key leads to; none: it stays. */
export function beside({ columns, children, row }: Layout, nodes: readonly Node[], one: number, key: string): number | undefined {
  if (key === 'ArrowLeft') return nodes[one]!.parent < 0 ? undefined : nodes[one]!.parent
  if (key === 'ArrowRight') return children[one]![0]
  const column = columns[nodes[one]!.step]!
  const at = column.findIndex((other) => row[other] === row[one])
  if (key === 'ArrowDown') return column[at + 1]
  if (key === 'ArrowUp') return column[at - 1]
  return undefined
}
