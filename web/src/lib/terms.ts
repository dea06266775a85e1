/** What the words and signs of the page mean, in a sentence or two; the only place where that is written. */

export const TERMS = {
  spread: 'Entropy of a row of weights in bits, averaged over the rows: 0 where each token looks at one other alone, 3 bits where it looks at eight equally.',
  distance: 'How many tokens (or patches) lie between who looks and what is looked at, weighed by attention and averaged over the rows. In encoder–decoder attention the two are places in two texts.',
  special: 'How much of the attention goes to tokens that are no part of the text: its beginning or end, a class token, a separator. Heads with nothing to do often look there.',
  rollout: 'Attention followed down through the layers: the mean of the heads, half of each token passing by on the residual path, multiplied layer by layer (Abnar and Zuidema, 2020). An approximation: values and feed-forward layers are left out.',
  mean: 'The average of the weights over all heads that are merged.',
  '·': 'A dot before a piece: it goes on with the word before it, without a space. Between two numbers, as in 2·3: layer 2, head 3.',
  '<s>': 'The beginning of a text: what a decoder reads before it has written anything.',
  '</s>': 'The end of a text: read as a token like others, and written by a model that has finished.',
  '[CLS]': 'A token before the text in which an encoder gathers what the whole text says.',
  '[SEP]': 'Where one text ends, and another may begin.',
  '[MASK]': 'A gap: the model is asked what stands here.',
  '<unk>': 'A character that the vocabulary does not have.',
  '␣': 'A space that is a token by itself.',
} as const
export type Term = keyof typeof TERMS

export function isTerm(text: string): text is Term {
  return Object.hasOwn(TERMS, text)
}

/** The signs among the names of tokens that want explaining, each once, in the order of the table. */
export function signs(names: readonly string[]): Term[] {
  const found = new Set(names.map((name) => (/^·./u.test(name) ? '·' : name)))
  return (Object.keys(TERMS) as Term[]).filter((term) => /^[·<[␣]/u.test(term) && found.has(term))
}
