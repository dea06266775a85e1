/** What a model does without, in a line. */

import { headName } from './names'
import type { Changes } from './types'

const NAMED = 4

export function without({ off, positions, scaling, mask }: Changes): string {
  const heads = off.slice(0, NAMED).map(([kind, layer, head]) => headName(kind, layer, head))
  const more = off.length - heads.length
  const parts = [...heads, ...(more ? [`${more} more ${more === 1 ? 'head' : 'heads'}`] : [])]
  if (!positions) parts.push('positions')
  if (!scaling) parts.push('scaling')
  if (!mask) parts.push('the mask')
  return parts.join(', ')
}
