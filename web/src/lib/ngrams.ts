/** What the linear classifier of n-grams adds to the scores of a text's labels, and each word's part in that. */

export interface NGramShares {
  /** The most probable ones, in order. */
  labels: string[]
  /** Of each label its score, and the part of n-grams in it; `bias` is the part of these that no word has. */
  whole: number[]
  ngrams: number[]
  bias: number[]
  /** Each word with its part in each label's. */
  words: [string, number[]][]
}

export interface Lead {
  label: string
  /** The label it is compared with; null: where a text may have several, each stands alone. */
  against: string | null
  /** What the model that reads says for it, and what n-grams say; of these the part of each word. */
  reader: number
  ngrams: number
  bias: number
  words: [string, number][]
}

/** By how much a label leads the most probable other one: only differences of scores mean anything, where one label is chosen. */
export function lead(shares: NGramShares, chosen: number, several: boolean): Lead | null {
  const label = shares.labels[chosen]
  if (label === undefined) return null
  const other = several ? undefined : chosen === 0 ? 1 : 0
  if (other !== undefined && shares.labels[other] === undefined) return null
  const difference = (row: readonly number[]) => row[chosen]! - (other === undefined ? 0 : row[other]!)
  const ngrams = difference(shares.ngrams)
  return {
    label,
    against: other === undefined ? null : shares.labels[other]!,
    reader: difference(shares.whole) - ngrams,
    ngrams,
    bias: difference(shares.bias),
    words: shares.words.map(([word, row]) => [word, difference(row)]),
  }
}
