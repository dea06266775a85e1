/** Places: the server counts code points, the page the units of its strings. */

export interface Span {
  begin: number
  end: number
}

/** What turns a number of code points of a text into a number of units. */
export function units(text: string): (points: number) => number {
  if (!/[\ud800-\udbff][\udc00-\udfff]/.test(text)) return (points) => points
  const starts: number[] = []
  let at = 0
  for (const point of text) {
    starts.push(at)
    at += point.length
  }
  return (points) => starts[points] ?? at
}

export function span(place: readonly [number, number], at: (points: number) => number): Span {
  return { begin: at(place[0]), end: at(place[1]) }
}

export const cut = (text: string, { begin, end }: Span) => text.slice(begin, end)

export const moved = ({ begin, end }: Span, by: number): Span => ({ begin: begin + by, end: end + by })

export const common = (one: Span, other: Span) => Math.max(0, Math.min(one.end, other.end) - Math.max(one.begin, other.begin))

/** Without the blanks around it. */
export function trimmed(text: string, { begin, end }: Span): Span {
  while (begin < end && /\s/.test(text[begin]!)) begin++
  while (end > begin && /\s/.test(text[end - 1]!)) end--
  return { begin, end }
}
