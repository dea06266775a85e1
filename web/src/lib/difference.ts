/** What became of a text, word by word. */

export interface Part {
  text: string
  kind: 'same' | 'new' | 'gone'
}

/** Texts with more words than that are not compared in the middle. */
const MOST = 600
/** Where less stays than that, what is gone is not shown: nothing of it could be read. */
const LITTLE = 0.34

export function difference(before: string, after: string): Part[] {
  const [old, young] = [words(before), words(after)]
  let first = 0
  while (first < Math.min(old.length, young.length) && old[first] === young[first]) first++
  let last = 0
  while (last < Math.min(old.length, young.length) - first && old.at(-1 - last) === young.at(-1 - last)) last++
  const middle = compared(old.slice(first, old.length - last), young.slice(first, young.length - last))
  const all: Part[] = [...same(young.slice(0, first)), ...middle, ...same(young.slice(young.length - last))]
  const stays = all.filter(({ kind, text }) => kind === 'same' && text.trim()).length
  const short = stays < LITTLE * young.filter((word) => word.trim()).length
  return joined(short ? all.filter(({ kind }) => kind !== 'gone') : all)
}

const words = (text: string) => text.match(/\s+|[\p{L}\p{N}_<>'’-]+|./gu) ?? []
const same = (some: readonly string[]): Part[] => some.map((text) => ({ text, kind: 'same' }))

/** By the longest common row of words. */
function compared(old: readonly string[], young: readonly string[]): Part[] {
  if (old.length > MOST || young.length > MOST) return [gone(old.join('')), fresh(young.join(''))].filter(({ text }) => text)
  const wide = young.length + 1
  const common = new Uint16Array((old.length + 1) * wide)
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = young.length - 1; j >= 0; j--)
      common[i * wide + j] = old[i] === young[j] ? common[(i + 1) * wide + j + 1]! + 1 : Math.max(common[(i + 1) * wide + j]!, common[i * wide + j + 1]!)
  const found: Part[] = []
  let [i, j] = [0, 0]
  while (i < old.length || j < young.length) {
    if (i < old.length && j < young.length && old[i] === young[j]) {
      found.push({ text: young[j]!, kind: 'same' })
      i++
      j++
    } else if (j >= young.length || (i < old.length && common[(i + 1) * wide + j]! >= common[i * wide + j + 1]!)) found.push(gone(old[i++]!))
    else found.push(fresh(young[j++]!))
  }
  return found
}

const gone = (text: string): Part => ({ text, kind: 'gone' })
const fresh = (text: string): Part => ({ text, kind: 'new' })

/** Neighbours of one kind as one; the space between two new words counts as new. */
function joined(parts: readonly Part[]): Part[] {
  const found: Part[] = []
  for (const [at, { text, kind: own }] of parts.entries()) {
    const between = own === 'same' && !text.trim() && parts[at - 1]?.kind === 'new' && parts[at + 1]?.kind === 'new'
    const kind = between ? 'new' : own
    const last = found.at(-1)
    if (last?.kind === kind) last.text += text
    else found.push({ text, kind })
  }
  return found
}
