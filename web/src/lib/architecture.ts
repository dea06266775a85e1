/** Figure 1 of a model: what its boxes are called, and where they are drawn, as the paper draws its own. */

import { count } from './numbers'
import type { PlacesKind } from './places'
import type { Model, Stack } from './types'

export interface FigureValues {
  /** Stack (empty: what follows the last), layer from 1 (0: outside), part, parameters, whether another box counts them. */
  boxes: [Stack | '', number, string, number, boolean][]
  sizes: { d_ff?: number; heads?: number; decoder_heads?: number; norm?: string; norm_place?: 'pre' | 'post'; activation?: string; cell?: string; score?: string; two_way?: boolean; pool?: string }
  positions: Partial<Record<Stack, PlacesKind>>
}

export interface Box {
  at: number
  stack: Stack | ''
  layer: number
  part: string
  parameters: number
  shared: boolean
}

export function boxesOf({ boxes }: Pick<FigureValues, 'boxes'>): Box[] {
  return boxes.map(([stack, layer, part, parameters, shared], at) => ({ at, stack, layer, part, parameters, shared }))
}

/** A box in an address: "encoder.2.attention". */
export function boxName({ stack, layer, part }: Pick<Box, 'stack' | 'layer' | 'part'>): string {
  return [stack, layer, part].join('.')
}

const POSITIONS: Partial<Record<PlacesKind, string>> = { relative: 'Relative positions', alibi: 'Linear biases', rotary: 'Rotary positions' }
const NORMS: Record<string, string> = { layer: 'Layer norm', rms: 'RMS norm', batch: 'Batch norm', group: 'Group norm' }
const CELLS: Record<string, string> = { elman: 'Elman RNN', gru: 'GRU', lstm: 'LSTM' }

/** Whether positions act inside attention, and nothing is added to the vectors. */
export function aside(values: Pick<FigureValues, 'positions'>, { stack, part }: Pick<Box, 'stack' | 'part'>): boolean {
  return part === 'positions' && stack !== '' && values.positions[stack]! in POSITIONS
}

/** Whether a box is the sum of pre-norm, which has no norm in it. */
export function adds({ part }: Pick<Box, 'part'>): boolean {
  return part.endsWith('_add')
}

export function title(box: Pick<Box, 'stack' | 'part'>, values: Pick<FigureValues, 'sizes' | 'positions'>, model: Pick<Model, 'writes' | 'image' | 'masked' | 'stacks'>): string {
  const { stack, part } = box
  const { sizes } = values
  if (part === 'embedding') return model.image ? 'Patch embedding' : stack === 'decoder' && values.positions.encoder !== undefined ? 'Output embedding' : 'Input embedding'
  if (part === 'positions') return POSITIONS[values.positions[stack as Stack]!] ?? 'Positional encoding'
  if (part === 'segments') return 'Segment embedding'
  if (adds(box)) return 'Add'
  if (part === 'embedding_norm' || part === 'final' || (part.endsWith('_norm') && sizes.norm_place === 'pre')) return NORMS[sizes.norm ?? 'layer'] ?? 'Norm'
  if (part.endsWith('_norm')) return 'Add & norm'
  if (part === 'attention') return model.masked.includes('decoder') && stack === 'decoder' ? 'Masked multi-head attention' : 'Multi-head attention'
  if (part === 'cross') return sizes.cell ? 'Attention' : 'Multi-head cross-attention'
  if (part === 'feedforward') return 'Feed-forward'
  if (part === 'recurrence') return sizes.cell ? `${CELLS[sizes.cell]}${sizes.two_way && stack === 'encoder' ? ', both ways' : ''}` : 'SSRU'
  if (part === 'bridge') return 'First state'
  if (part === 'output') return 'Linear, softmax'
  return { words: 'Dense, linear, softmax', tags: 'Linear, softmax', nothing: 'Pooling' }[model.writes as string] ?? 'Pooling, linear, softmax'
}

/** Its parameters in a few words. */
export function weighs({ parameters, shared, part }: Pick<Box, 'parameters' | 'shared' | 'part'>): string {
  if (!parameters) return part === 'positions' ? 'nothing learned' : ''
  return shared ? 'the same table' : count(parameters)
}

/** By its colour: what kind of thing a box is. */
export function colourOf({ part }: Pick<Box, 'part'>): 'embedding' | 'attention' | 'inner' | 'norm' | 'output' {
  if (part.endsWith('_norm') || part === 'final' || part.endsWith('_add')) return 'norm'
  if (part === 'attention' || part === 'cross') return 'attention'
  if (part === 'feedforward' || part === 'recurrence' || part === 'bridge') return 'inner'
  return part === 'output' || part === 'head' ? 'output' : 'embedding'
}

/** Where a vector of a stack passes, first to last: boxes whose vector is known, in every layer. */
export function stations(boxes: readonly Box[], stack: Stack, known: (box: Box) => boolean): Box[] {
  return boxes.filter((box) => box.stack === stack && known(box))
}
