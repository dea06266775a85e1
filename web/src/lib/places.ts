/** What a model knows of where its tokens stand. */

import type { Grid } from './payload'
import type { Model } from './types'

export type PlacesKind = 'sinusoidal' | 'timing_signal' | 'learned' | 'relative' | 'alibi' | 'rotary' | 'grid' | 'none'

export interface PlacesValues {
  kind: PlacesKind
}

/** One sentence on each kind. */
export const ADDED: Record<PlacesKind, string> = {
  sinusoidal:
    'Attention by itself does not see the order of words, so a vector of its own is added to the word at every position: waves, short ones in the first dimensions and long ones in the last.',
  timing_signal:
    'Attention by itself does not see the order of words, so a vector of its own is added to the word at every position: waves, the sines in the first half of the dimensions and the cosines in the second, long ones at the end of each.',
  learned:
    'Attention by itself does not see the order of words, so a vector of its own is added to the word at every position, learned as the rest of the model is.',
  grid: 'Attention by itself does not see where a patch is, so a learned vector is added to each: one half tells its row, the other half its column.',
  relative:
    'Attention by itself does not see the order of words, so every head adds a learned number to its scores that depends on nothing but how far the key stands from the query.',
  alibi:
    'Attention by itself does not see the order of words, so every head takes from its scores a number that grows evenly with the distance between query and key. Each head has its own slope; nothing of it is learned.',
  rotary:
    'Attention by itself does not see the order of words, so every head turns its queries and keys by angles that grow with their positions. The score of two tokens then depends on how far apart they stand, not on where.',
  none: 'Nothing tells these layers where a token stands: no positions are added here.',
}

/** Positions from crest to crest in a dimension, counted from 0: 2π · 10000^(2i / d) [Vaswani17 §3.5]. */
export function waveLength(dimension: number, size: number): number {
  return 2 * Math.PI * 10_000 ** ((2 * Math.floor(dimension / 2)) / size)
}

/** Rows and columns of the patches of an image. */
export function patches(model: Pick<Model, 'image'>): { rows: number; columns: number } | null {
  if (!model.image) return null
  const { height, width, patch } = model.image
  return { rows: Math.floor(height / patch), columns: Math.floor(width / patch) }
}

/** Of an image the class token stands first, then the patches row by row. */
export function placeName(at: number, grid: { columns: number } | null): string {
  if (!grid) return `position ${at}`
  return at === 0 ? 'the class token' : `patch ${Math.floor((at - 1) / grid.columns) + 1},${((at - 1) % grid.columns) + 1}`
}

/** One column of a table: a dimension over all positions. */
export function column({ shape, data }: Grid, at: number): Float32Array {
  const wide = shape[1]!
  return Float32Array.from({ length: shape[0]! }, (_, row) => data[row * wide + at]!)
}

export function rowOf({ shape, data }: Grid, at: number): Float32Array {
  return (data as Float32Array).subarray(at * shape[1]!, (at + 1) * shape[1]!)
}

/** Which way a distance goes: keys before the query are below zero. */
export function distanceName(distance: number): string {
  if (distance === 0) return 'the token itself'
  const size = Math.abs(distance)
  return `${size} ${size === 1 ? 'token' : 'tokens'} ${distance < 0 ? 'before' : 'behind'}`
}
