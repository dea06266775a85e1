import { expect, it } from 'vitest'
import { chance } from '../src/lib/order'
import { small } from '../src/lib/pictures'

it('a small picture holds what the queries of a cell give to its keys, on average', () => {
  const [rows, columns, most] = [11, 7, 4]
  const random = chance(9)
  const data = Float32Array.from({ length: rows * columns }, random)
  const edges = (size: number) => Array.from({ length: most + 1 }, (_, part) => Math.floor((part * size) / most))
  const [down, across] = [edges(rows), edges(columns)]
  const cells: number[] = []
  for (let i = 0; i < most; i++)
    for (let j = 0; j < most; j++) {
      let sum = 0
      for (let row = down[i]!; row < down[i + 1]!; row++) for (let column = across[j]!; column < across[j + 1]!; column++) sum += data[row * columns + column]!
      cells.push(sum / (down[i + 1]! - down[i]!))
    }
  const largest = Math.max(...cells)
  const found = small(data, rows, columns, most)
  expect([found.rows, found.columns]).toEqual([most, most])
  expect([...found.data]).toEqual(cells.map((cell) => Math.round((cell / largest) * 255)))
})

it('a picture that is small already stays, and nothing stays nothing', () => {
  expect([...small([0, 0.5, 1, 0.25], 2, 2).data]).toEqual([0, 128, 255, 64])
  expect([...small([0, 0], 1, 2).data]).toEqual([0, 0])
})
