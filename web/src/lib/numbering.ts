/** The steps of the equation, numbered one behind the other: what an equation does not have has no number. */

export interface Numbering {
  keys: number
  product: number
  /** Divided by the root of d_k, with positions added, hidden by the mask; null: it is not. */
  divided: number | null
  biased: number | null
  masked: number | null
  softmax: number
  values: number
  sum: number
  /** From the first step behind the product to the softmax: "3–5", or "3". */
  weights: string
}

export function numbering(has: { divided: boolean; biased: boolean; masked: boolean }): Numbering {
  let last = 2
  const next = (there: boolean) => (there ? (last += 1) : null)
  const [divided, biased, masked] = [next(has.divided), next(has.biased), next(has.masked)]
  const softmax = last + 1
  return { keys: 1, product: 2, divided, biased, masked, softmax, values: softmax + 1, sum: softmax + 2, weights: softmax > 3 ? `3–${softmax}` : '3' }
}
