/** What one box of Figure 1 does, in a sentence, and its parameters as a sum; the numbers come from the server. */

import { adds, type Box, type FigureValues } from './architecture'
import { count } from './numbers'
import type { Model } from './types'

export interface BoxValues {
  /** Of an embedding: what a row is multiplied by. */
  scale?: number
  /** Of a norm: its kind, and what its output is multiplied by. */
  norm?: string
  factor?: number
  /** Of a feed-forward: the units that add most, how many are above zero, whether a second projection multiplies them. */
  units?: number[]
  firing?: number
  gated?: boolean
  heads?: number
  /** Of an output: the candidates, how many there are, and the sum of e^(score − the largest). */
  names?: string[]
  count?: number
  sum?: number
}

type Named = Pick<Model, 'image' | 'd_model' | 'stacks' | 'writes'>

/** What a box does. */
export function does(box: Pick<Box, 'stack' | 'part'>, { sizes, positions }: Pick<FigureValues, 'sizes' | 'positions'>, model: Named): string {
  const { part, stack } = box
  if (part === 'embedding') return model.image ? 'The pixels of every patch, times one matrix, become a vector.' : 'Every token has a row of its own in a table that was learned: its vector.'
  if (part === 'positions') {
    const kind = stack && positions[stack]
    if (kind === 'relative' || kind === 'alibi') return 'Nothing is added to the vectors here: every head adds a number to its scores, by how far the key stands from the query.'
    if (kind === 'rotary') return 'Nothing is added to the vectors here: queries and keys are turned by their positions, inside attention.'
    return 'Attention does not see the order of tokens, so each position has a vector that is added.'
  }
  if (part === 'segments') return 'Each token also gets the vector of the text that it belongs to, the first or the second.'
  if (adds(box)) return 'The residual connection: what the sub-layer made is added to what came in, so the vector itself always gets through.'
  if (part.endsWith('_norm') || part === 'final') {
    const what = sizes.norm === 'rms' ? 'divided by their root mean square' : sizes.norm === 'batch' ? 'less a mean, divided by a deviation that training found' : 'less their mean, divided by their deviation'
    const where = part === 'final' || part === 'embedding_norm' ? '' : sizes.norm_place === 'pre' ? ' It stands before the sub-layer; the paper has it behind.' : ' It stands behind the sub-layer, as in the paper.'
    const whole = sizes.norm_place !== 'pre' && part !== 'embedding_norm' && part !== 'final' ? 'What the sub-layer made is added to what came in. Then' : 'Only for what comes next,'
    return `${part === 'final' || part === 'embedding_norm' ? 'The' : `${whole} the`} numbers of each token are normalised: ${what}, then times a gain${sizes.norm === 'rms' ? '' : ' and plus a bias'} that were learned.${where}`
  }
  if (part === 'cross' && sizes.cell) return 'The decoder’s state is compared with the encoder’s state at every token; their mean, weighed by that, is the context. Both together make what is written next.'
  if (part === 'attention' || part === 'cross') {
    const from = part === 'cross' ? ' Queries come from what is written, keys and values from what was read.' : ''
    return `Each head makes of every vector a query, a key and a value, and takes of all values as much as query and key agree. The heads stand side by side (Concat), and an output matrix mixes them.${from}`
  }
  if (part === 'feedforward') return 'The same small network for every token by itself: units that fire or not, each with a vector that it adds when it does.'
  if (part === 'recurrence') return sizes.cell ? 'Token by token: each state is made of the token’s vector and of the state before, and must hold all that was read.' : 'A recurrence in place of self-attention: each state is a mean of the state before and of what comes in, by a gate.'
  if (part === 'bridge') return 'The decoder begins with what the encoder’s last state becomes, tanh(W h + b).'
  if (part === 'output') return 'The vector is compared with the row of every token in the table; softmax makes of these scores probabilities that sum to one.'
  if (model.writes === 'words') return 'A dense layer and a norm; then the vector is compared with the row of every token in the table, and softmax makes probabilities.'
  if (model.writes === 'nothing') return 'One vector is made of those of all tokens.'
  return model.writes === 'tags' ? 'Each token’s vector is compared with a row for every tag.' : 'One vector is made of those of all tokens, and compared with a row for every class.'
}

/** How its parameters come about; nothing where there are none, or where no more is to be said than their number. */
export function made({ part, parameters, shared }: Pick<Box, 'part' | 'parameters' | 'shared'>, { sizes }: Pick<FigureValues, 'sizes'>, { d_model: d }: Pick<Model, 'd_model'>): string {
  if (!parameters) return ''
  if (shared) return `${count(parameters)} parameters, counted before: it is the same table.`
  const all = `${count(parameters)} parameters`
  const inner = sizes.d_ff
  if (part === 'feedforward' && inner) return `${all}: ${sizes.activation?.startsWith('gated') ? 'three' : 'two'} matrices between ${count(d)} and ${count(inner)} numbers${parameters % (d * inner) ? ', and biases' : ''}.`
  if ((part === 'attention' || part === 'cross') && inner) return `${all}: four matrices, for queries, keys, values and the output${parameters % (d * d) ? ', and biases' : ''}.`
  return `${all}.`
}
