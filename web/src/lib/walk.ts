/** The guided walk of a demonstration: what was measured of its pronouns, in steps; every number is from `walk.json`. */

import { unchanged } from './link'
import type { Look, Picture } from './look'
import { headName } from './names'
import { count, percent } from './numbers'
import type { Asked, Changes, Kind } from './types'

export interface Head {
  kind: Kind
  layer: number
  head: number
}

/** Of a pronoun's attention, in the mean. */
export interface Shares {
  antecedent: number
  rival: number
  nouns: number
  chance: number
  /** Of the German pronoun's: on the English one. */
  pronoun: number
}

/** A head, and how many pronouns are right without it. */
export interface Finding {
  head: Head
  shares: Shares | null
  right: number
}

export interface Removed {
  heads: Head[]
  right: number
}

export interface Told {
  source: string
  target: string
  antecedent: string
  rival: string
  pronoun: string
}

/** What is known before anything was measured. */
export interface Classic {
  pronoun: string
  sentences: Told[]
}

export interface Walk extends Classic {
  /** Whether it was measured with the weights that are there now. */
  fits: boolean
  encoder: Head | null
  cross: Head | null
  guess: number
  half: number
  tolerance: number
  study: {
    sentences: number
    right: number
    commonest: number
    heads: Finding[]
    steps: Removed[]
    smallest: Removed | null
    without_lookers: Removed
    spare: number
  }
}

/** Of its steps; before anything was measured there is one. */
export function titles({ pronoun }: Pick<Classic, 'pronoun'>, measured = true): string[] {
  const all = [
    `What does “${pronoun}” mean?`,
    'Who looks at the noun?',
    'What does the German pronoun read?',
    'What does each head’s removal cost?',
    'Which heads are needed?',
    'How much is spare?',
  ]
  return measured ? all : all.slice(0, 1)
}

export function named({ kind, layer, head }: Head): string {
  return headName(kind, layer, head)
}

/** Several heads in a sentence. */
export function listed(heads: readonly Head[]): string {
  const names = heads.map(named)
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
}

function same(one: Head, other: Head): boolean {
  return one.kind === other.kind && one.layer === other.layer && one.head === other.head
}

export function finding({ study }: Walk, head: Head | null): Finding | null {
  return (head && study.heads.find((one) => same(one.head, head))) ?? null
}

/** `109 of 300`. */
export function of({ study }: Walk, right: number): string {
  return `${count(right)} of ${count(study.sentences)}`
}

/** How many pronouns more are wrong without it; less than none where more are right. */
export function cost({ study }: Walk, { right }: Pick<Finding, 'right'>): number {
  return study.right - right
}

export function costliest({ study }: Walk): Finding {
  return study.heads.reduce((most, one) => (one.right < most.right ? one : most))
}

/** Whether its removal alone costs nothing. */
export function isSpare(walk: Walk, one: Finding): boolean {
  return cost(walk, one) <= walk.tolerance * walk.study.sentences
}

export function isGuess(walk: Walk, { right }: Pick<Finding, 'right'>): boolean {
  return right <= walk.guess * walk.study.sentences
}

/** Other heads of which each is enough alone, where the smallest set is one head. */
export function alike(walk: Walk): Finding[] {
  const { smallest, heads } = walk.study
  if (smallest?.heads.length !== 1) return []
  return heads.filter((one) => isGuess(walk, one) && !same(one.head, smallest.heads[0]!))
}

/** How long the bar of a cost is, as a share of the longest that there can be. */
export function length(walk: Walk, one: Finding): number {
  return walk.study.right ? Math.max(0, cost(walk, one)) / walk.study.right : 0
}

export function costs(walk: Walk, one: Finding): string {
  const lost = cost(walk, one)
  if (!lost) return 'costs nothing'
  return lost > 0 ? `costs ${count(lost)} pronoun${lost === 1 ? '' : 's'}` : `${count(-lost)} more right`
}

// ---- what each step says

export function question(walk: Walk): string {
  const { right, commonest } = walk.study
  return `German has to choose: er, sie or es, by the gender of the noun that “${walk.pronoun}” stands for. So the translation shows which noun the model took. On ${count(walk.study.sentences)} sentences that it never saw, each with two nouns of different gender, it chooses right in ${of(walk, right)}; always the commonest pronoun would be right in ${count(commonest)}.`
}

export function looker(walk: Walk): string {
  const found = finding(walk, walk.encoder)
  if (!found?.shares) return 'This model has no attention within the English sentence.'
  const { antecedent, rival, chance } = found.shares
  const who = `In the mean over ${count(walk.study.sentences)} sentences, ${named(found.head)} gives ${percent(antecedent)} of its attention from “${walk.pronoun}” to the noun that “${walk.pronoun}” stands for, and ${percent(rival)} to the other noun. Nouns look at other nouns with ${percent(chance)}.`
  return antecedent > walk.half ? who : `${who} That is less than half: no encoder head looks mainly at the noun.`
}

/** Whether the German pronoun's head looks at the English pronoun rather than at the noun. */
export function readsPronoun({ pronoun, antecedent }: Shares): boolean {
  return pronoun > antecedent
}

export function reader(walk: Walk): string {
  const found = finding(walk, walk.cross)
  if (!found?.shares) return 'This model has no attention between the two languages.'
  const { antecedent, rival, pronoun } = found.shares
  const it = `“${walk.pronoun}”`
  const who = `When the German pronoun is about to be written, ${named(found.head)}`
  const nouns = `${percent(antecedent)} to the noun that ${it} stands for and ${percent(rival)} to the other noun`
  const resolved = (finding(walk, walk.encoder)?.shares?.antecedent ?? 0) > walk.half
  if (!readsPronoun(found.shares)) return `${who} gives ${nouns}, and ${percent(pronoun)} to ${it} itself.`
  const conclusion = resolved ? ` This fits what was seen before: the encoder brings the noun to ${it}, and the decoder reads it there.` : ''
  return `${who} looks at ${it} itself: it gives ${percent(pronoun)} to ${it}, ${nouns}.${conclusion}`
}

export function priced(walk: Walk): string {
  const most = costliest(walk)
  return `Where a head looks does not say that the model needs it. So each head is switched off alone, and the ${count(walk.study.sentences)} pronouns are chosen again. With all heads ${count(walk.study.right)} are right; the bars show how many more are wrong. ${cost(walk, most) > 0 ? `Most is lost without ${named(most.head)}: ${count(most.right)} are right.` : 'No head alone costs anything.'}`
}

export function needed(walk: Walk): string {
  const { smallest, commonest } = walk.study
  const guess = `at most ${percent(walk.guess)} right`
  if (!smallest) return `No such set was found: even with all heads off the pronoun is no guess (${guess}).`
  if (!smallest.heads.length) return `None: the pronoun is a guess (${guess}) with all heads on. This model has learned too little.`
  const alone = alike(walk)
  const others = alone.length ? ` Switching off ${alone.map((one) => `${named(one.head)} alone (${count(one.right)} right)`).join(' or ')} does it too.` : ''
  return `Heads are switched off one after another, each time the one that costs most, until the pronoun is a guess (${guess}). The smallest set that was found is ${listed(smallest.heads)}: without ${smallest.heads.length === 1 ? 'it' : 'them'} ${of(walk, smallest.right)} are right; always the commonest pronoun would be right in ${count(commonest)}.${others}`
}

export function redundancy(walk: Walk): string {
  const { heads, spare, without_lookers: lookers } = walk.study
  const free = `${count(spare)} of ${count(heads.length)} heads cost nothing when they are switched off alone: at most ${percent(walk.tolerance)} fewer pronouns are right.`
  const half = `more than ${percent(walk.half)} of the pronoun’s attention`
  if (!lookers.heads.length) return `${free} No head gives the noun ${half}, so there is none to switch off for looking there.`
  const one = lookers.heads.length === 1
  return `${free} ${one ? 'One head gives' : `${count(lookers.heads.length)} heads give`} the noun ${half} (${listed(lookers.heads)}); without ${one ? 'it' : 'all of them'} ${of(walk, lookers.right)} are right. Heads that cost nothing alone may still stand in for one another.`
}

// ---- what is shown of the model itself

/** Sets of heads without which the sentences are translated for the walk: none, and those that its steps switch off. */
export function sets(walk: Walk): Head[][] {
  const { smallest, without_lookers: lookers } = walk.study
  const found = new Map<string, Head[]>()
  for (const heads of [[], smallest?.heads ?? [], lookers.heads, [costliest(walk).head]]) found.set(key(heads), found.get(key(heads)) ?? heads)
  return [...found.values()]
}

/** Where a word of a sentence looks in a head, by words; null: the word or the head is not there. */
export function looked(classic: Pick<Classic, 'pronoun'>, look: Look, head: Head): { picture: Picture; row: number } | null {
  const at = row(classic, look, head.kind)
  const data = at === null ? null : look.weights({ ...head, merge: 'head' })
  return at !== null && data ? { picture: look.picture(head.kind, data, true), row: at } : null
}

/** What the pronoun gives a noun. */
function given({ picture, row }: { picture: Picture; row: number }, noun: string): number {
  const found = picture.columns.findIndex(({ name }) => name === noun)
  return found < 0 ? 0 : picture.data[row * picture.columns.length + found]!
}

/** The encoder's head in which the pronoun gives the noun that it stands for most, less what it gives the other one. */
export function sharpest(classic: Classic, looks: readonly Look[]): Head | null {
  const sizes = looks[0]?.values.kinds.encoder
  let [found, most] = [null as Head | null, -Infinity]
  for (let layer = 1; layer <= (sizes?.layers ?? 0); layer++)
    for (let number = 1; number <= sizes!.heads; number++) {
      const head: Head = { kind: 'encoder', layer, head: number }
      const margin = classic.sentences.reduce((sum, { antecedent, rival }, at) => {
        const seen = looks[at] && looked(classic, looks[at], head)
        return seen ? sum + given(seen, antecedent) - given(seen, rival) : sum
      }, 0)
      if (margin > most) [found, most] = [head, margin]
    }
  return found
}

/** The word in which two sentences differ, by its place among their words; null: they differ in more. */
export function exchangeable(one: readonly string[], other: readonly string[]): number | null {
  const differ = one.flatMap((word, at) => (word === other[at] ? [] : [at]))
  return one.length === other.length && differ.length === 1 ? differ[0]! : null
}

/** A set of heads by a name. */
export function key(heads: readonly Head[]): string {
  return JSON.stringify(heads.map(({ kind, layer, head }) => [kind, layer, head]))
}

/** What changes between two translations: nothing, the word behind the last “weil” alone, or more. */
export function change(before: string, after: string): 'nothing' | 'the pronoun' | 'more' {
  if (before === after) return 'nothing'
  const [one, other] = [before.split(' '), after.split(' ')]
  const at = one.lastIndexOf('weil') + 1
  return at > 0 && one.length === other.length && one.every((word, place) => place === at || word === other[place]) ? 'the pronoun' : 'more'
}

/** The same of all sentences, in words. */
export function changes(before: readonly string[], after: readonly string[]): string {
  const found = before.map((said, at) => change(said, after[at]!))
  if (found.every((one) => one === 'nothing')) return 'Here both translations stay as they were: no single sentence shows what is lost over many.'
  if (found.includes('more')) return 'Here more than the pronoun changes, so the model needs this for other words too.'
  return 'Here the pronoun changes, and nothing else.'
}

/** The word that looks: the English pronoun, or the German one behind the last “weil”. Null: it is not there. */
export function row({ pronoun }: Pick<Classic, 'pronoun'>, look: Look, kind: Kind): number | null {
  if (!(kind in look.values.kinds)) return null
  const words = look.labels(look.sides(kind).queries, true).map(({ name }) => name)
  if (kind === 'encoder') {
    const found = words.indexOf(pronoun)
    return found < 0 ? null : found
  }
  const behind = words.lastIndexOf('weil') + 1
  return behind > 0 && behind < words.length ? behind : null
}

export function without(heads: readonly Head[]): Changes {
  return { ...unchanged(), off: heads.map(({ kind, layer, head }) => [kind, layer, head]) }
}

/** A question about one of the sentences, of the model's best weights. */
export function asked(model: number, text: string, off: readonly Head[] = []): Asked {
  return { model, snapshot: null, text, target: null, branch: null, image: null, changes: without(off), window: null }
}
