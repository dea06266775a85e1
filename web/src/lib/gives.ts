/** What each head gives from a token that is kept. */

import type { Label } from './look'

export interface Given {
  layer: number
  head: number
  /** What it looks at most, and with which share. */
  label: Label
  weight: number
}

/** Of every head what it gives most to. `weights` are heads by keys, layer after layer; labels may be words of several keys. */
export function gives(weights: Float32Array, heads: number, keys: number, labels: readonly Label[]): Given[] {
  return Array.from({ length: weights.length / keys }, (_, at) => {
    const row = weights.subarray(at * keys, (at + 1) * keys)
    let [label, weight] = [labels[0]!, -1]
    for (const one of labels) {
      const share = one.places.reduce((sum, place) => sum + row[place]!, 0)
      if (share > weight) [label, weight] = [one, share]
    }
    return { layer: Math.floor(at / heads) + 1, head: (at % heads) + 1, label, weight }
  })
}
