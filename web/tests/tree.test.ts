import { describe, expect, it } from 'vitest'
import { beside, fate, layout, names, path, penalty, scores, type Node, type Search } from '../src/lib/tree'

/** A search by chance: some rows a step, each child of a row that went on. */
function chance(seed: number, steps: number, beam: number): Search {
  let state = seed
  const random = () => (state = (state * 48271) % 2147483647) / 2147483647
  const nodes: Node[] = []
  let live = [-1]
  for (let step = 1; step <= steps && live.length; step++) {
    const next: number[] = []
    const some = Array.from({ length: beam }, () => live[Math.floor(random() * live.length)]!).sort((a, b) => a - b)
    for (const parent of some) {
      const probability = 0.05 + 0.9 * random()
      const log = (parent < 0 ? 0 : nodes[parent]!.log_probability) + Math.log(probability)
      const finished = step > 3 && random() < 0.15
      const ends = finished ? 'finished' : step === steps ? 'left' : 'live'
      if (ends === 'live') next.push(nodes.length)
      nodes.push({ step, parent, id: nodes.length, piece: 'x', probability, log_probability: log, fate: ends, others: [] })
    }
    live = next
  }
  const ends = nodes.flatMap((one, at) => (one.fate === 'live' ? [] : [at])).sort((a, b) => nodes[b]!.log_probability - nodes[a]!.log_probability)
  const hypotheses = ends.slice(0, beam).map((end) => ({ text: '', score: 0, finished: nodes[end]!.fate === 'finished', branch: path(nodes, end) }))
  return { nodes, hypotheses, length_penalty: 0.6 }
}

describe('a search as a tree', () => {
  it('stands without overlap and without crossings, the best output straight on top', () => {
    for (let seed = 1; seed <= 40; seed++) {
      const search = chance(seed, 3 + (seed % 20), 1 + (seed % 8))
      const { row, rows, columns } = layout(search)
      const { nodes, hypotheses } = search
      columns.forEach((some) => {
        const places = some.map((one) => row[one]!)
        expect(new Set(places).size).toBe(places.length)
        // from top to bottom, parents are from top to bottom: no two lines cross
        const above = some.map((one) => (nodes[one]!.parent < 0 ? 0 : row[nodes[one]!.parent]!))
        above.forEach((place, at) => expect(place).toBeGreaterThanOrEqual(above[at - 1] ?? 0))
      })
      expect(columns.flat().length).toBe(nodes.length)
      columns.forEach((some, step) => some.forEach((one) => expect(nodes[one]!.step).toBe(step)))
      hypotheses[0]?.branch.forEach((one) => expect(row[one]).toBe(0))
      expect(Math.min(...row)).toBe(0)
      expect(rows).toBeLessThanOrEqual(Math.max(...columns.map((some) => some.length)) + 1)
    }
  })

  it('is walked by the keys', () => {
    const search = chance(7, 8, 4)
    const found = layout(search)
    const first = found.roots[0]!
    expect(beside(found, search.nodes, first, 'ArrowLeft')).toBeUndefined()
    const below = beside(found, search.nodes, first, 'ArrowDown')!
    expect(beside(found, search.nodes, below, 'ArrowUp')).toBe(first)
    const right = beside(found, search.nodes, first, 'ArrowRight')!
    expect(search.nodes[right]!.parent).toBe(first)
    expect(beside(found, search.nodes, right, 'ArrowLeft')).toBe(first)
  })

  it('says what became of a prefix', () => {
    const search = chance(11, 9, 3)
    const found = layout(search)
    const end = search.hypotheses[0]!.branch.at(-1)!
    expect(fate(search, found, end)).toContain('output 1')
    expect(fate(search, found, search.hypotheses[0]!.branch[0]!)).toBe('kept: leads to output 1')
  })

  it('knows what lengths are divided by', () => {
    expect(penalty(1, 0.6)).toBe(1)
    expect(penalty(13, 1)).toBe(3)
    expect(penalty(7, 0)).toBe(1)
  })

  it('of nothing is nothing', () => {
    expect(layout({ nodes: [], hypotheses: [], length_penalty: 0 }).rows).toBe(0)
  })

  it('names its tokens by what they stand behind, and tells the scores where outputs end', () => {
    const node = (piece: string, parent: number): Node => ({ step: parent + 2, parent, id: 0, piece, probability: 1, log_probability: 0, fate: 'live', others: [] })
    const nodes = [node('▁B', -1), node('r', 0), node('ücke', 1), node('.', 2), node('r', -1)]
    expect(names(nodes, null)).toEqual(['B', '·r', '·ücke', '.', 'r'])
    expect(names(nodes, 'o')[4]).toBe('·r')
    const hypotheses = [{ text: '', score: -0.5, finished: true, branch: [0, 1, 2, 3] }, { text: '', score: -2, finished: false, branch: [4] }]
    expect(scores({ nodes, hypotheses, length_penalty: 1 })).toEqual([null, null, null, -0.5, -2])
  })
})
