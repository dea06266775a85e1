/** A page that was saved as a static site: questions that have an answer, each in a file named by the question. */

/** FNV-1a of a question's JSON without what is as usual; `library/serve/static_site.py` computes the same. */
export function fileName(endpoint: string, asked: object): string {
  let code = 0xcbf29ce484222325n
  for (const byte of new TextEncoder().encode(endpoint + JSON.stringify(told(asked)))) code = BigInt.asUintN(64, (code ^ BigInt(byte)) * 0x100000001b3n)
  return code.toString(16).padStart(16, '0')
}

/** A question without its defaults: nulls, true, empty lists and objects; its names in order. */
function told(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(told)
  if (typeof value !== 'object' || value === null) return value
  const inner = Object.entries(value).flatMap(([name, one]) => {
    const what = name === 'weights' || name === 'opening' ? null : told(one)
    return what === null || what === undefined || what === true || (typeof what === 'object' && !Object.keys(what).length) ? [] : [[name, what] as const]
  })
  return Object.fromEntries(inner.sort(([one], [other]) => (one < other ? -1 : 1)))
}
