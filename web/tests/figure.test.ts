import { describe, expect, it } from 'vitest'
import { figure, type Figure, type Mode } from '../src/draw/figure'
import type { Label } from '../src/lib/look'

const label = (name: string, special = false): Label => ({ text: `▁${name}`, name, special, places: [0] })
const given = (more: Partial<Figure> = {}): Figure => ({
  mode: 'lines',
  picture: { rows: [label('es'), label('war')], columns: [label('the'), label('<img> & "x"'), label('</s>', true)], data: Float32Array.from([0.1, 0.9, 0, 0.5, 0, 0.5]) },
  row: 0,
  title: 'Encoder–decoder head 2·2',
  above: ['the model “demo”', 'It was too tired.'],
  below: ['“es” looks at animal 90 %.'],
  names: ['what is written', 'what is read'],
  whole: false,
  same: false,
  full: 0.9,
  theme: 'light',
  colour: (name) => name,
  measure: (text) => text.length * 8,
  ...more,
})
const said = (svg: string) => [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map((found) => found[1])

describe('a head as a drawing', () => {
  it.each<Mode>(['lines', 'text', 'matrix'])('has its title, its sentence and every word, drawn as %s', (mode) => {
    const { svg, width, height } = figure(given({ mode }))
    for (const one of ['Encoder–decoder head 2·2', 'the model “demo”', 'It was too tired.', '“es” looks at animal 90 %.', 'es', 'war', 'the', '&lt;img&gt; &amp; &quot;x&quot;', '&lt;/s&gt;'])
      expect(said(svg)).toContain(one)
    expect(svg).not.toContain('▁')
    expect(svg).not.toContain('<img')
    expect(svg).toContain(`viewBox="0 0 ${width} ${height}"`)
  })

  it('draws the lines of the word that is kept, else those of all', () => {
    const paths = (row: number | null) => [...figure(given({ row })).svg.matchAll(/<path/g)].length
    expect([paths(0), paths(1), paths(null)]).toEqual([2, 2, 4])
    expect(said(figure(given()).svg)).toContain('0.90')
    expect(said(figure(given({ row: null })).svg)).not.toContain('0.90')
  })

  it('has a square for every pair that gives something', () => {
    const cells = [...figure(given({ mode: 'matrix' })).svg.matchAll(/fill="rgb/g)].length
    expect(cells).toBe(4)
  })

  it('holds what it draws', () => {
    const long = Array.from({ length: 30 }, (_, at) => label(`word${at}`))
    for (const mode of ['lines', 'text', 'matrix'] as const) {
      const { svg, width, height } = figure(given({ mode, row: 3, above: ['a sentence '.repeat(40)], picture: { rows: long, columns: long, data: new Float32Array(900).fill(1 / 30) } }))
      const places = [...svg.matchAll(/<text x="([\d.]+)" y="([\d.]+)"[^>]*start"[^>]*>([^<]*)</g)]
      for (const [, x, , text] of places) expect(Number(x) + text!.length * 8 + 24).toBeLessThanOrEqual(width)
      expect(height).toBeGreaterThan(mode === 'text' ? 200 : 30 * 18)
    }
  })

  it('tears no word between its pieces, however the lines end', () => {
    const texts = Array.from({ length: 40 }, (_, at) => ['▁tran', 'sla', 'tion', `.${at}`]).flat()
    const long = texts.map((text) => ({ ...label(text), text, name: text }))
    const { svg } = figure(given({ mode: 'text', row: 3, same: true, picture: { rows: long, columns: long, data: new Float32Array(long.length ** 2) } }))
    const places = [...svg.matchAll(/<text x="([\d.]+)" y="([\d.]+)"[^>]*font-size="17"[^>]*>([^<]*)</g)].map(([, x, y, text]) => ({ x: Number(x), y: Number(y), text: text! }))
    expect(places.map(({ text }) => text)).toEqual(texts.map((text) => text.replace('▁', '')))
    expect(new Set(places.map(({ y }) => y)).size).toBeGreaterThan(5)
    places.forEach((one, at) => {
      if (at % 4) expect([one.y, one.x]).toEqual([places[at - 1]!.y, places[at - 1]!.x + places[at - 1]!.text.length * 8])
    })
  })

  it('says no character that a drawing cannot hold', () => {
    expect(figure(given({ title: 'a\u0000\u001b\ud800b' })).svg).toContain('>ab</text>')
  })
})
