/** Numbers in powers of ten, taken apart so that the power can be set as one. */

const RAISED = '⁰¹²³⁴⁵⁶⁷⁸⁹'
const POWER = /^(.*?)(?:e([−-]?\d+)| × 10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))(.*)$/

/** `7.7e−20` and `7.7 × 10⁻²⁰ %` as what stands before the power, the power, and what stands behind it. */
export function powers(text: string): [before: string, power: string, behind: string] {
  const found = POWER.exec(text)
  if (!found) return [text, '', '']
  const [, before, plain, raised, behind] = found
  const power = plain ?? [...raised!].map((one) => (one === '⁻' ? '−' : String(RAISED.indexOf(one)))).join('')
  return [`${before} × 10`, power.replace('-', '−'), behind!]
}
