/** Round numbers along an axis. */

/** About so many from the least to the largest, all multiples of 1, 2 or 5 times a power of ten. */
export function ticks(least: number, largest: number, about: number): number[] {
  if (!(largest > least) || about < 1) return [least]
  const wide = (largest - least) / about
  const ten = 10 ** Math.floor(Math.log10(wide))
  const by = [1, 2, 5, 10].map((times) => times * ten).find((one) => one >= wide * 0.999)!
  const found: number[] = []
  for (let at = Math.ceil(least / by - 1e-9); at * by <= largest + by * 1e-9; at++) found.push(at === 0 ? 0 : Number((at * by).toPrecision(12)))
  return found
}

/** A tick in as many digits as it has. */
export function tickName(value: number): string {
  return String(value).replace('-', '−')
}
