/** What is said of errors, on either page. */

/** As one stands alone: with a capital, and an end. */
export function sentence(text: string): string {
  const ended = /[.!?…]$/.test(text) ? text : `${text}.`
  return ended.replace(/^\p{Ll}/u, (letter) => letter.toUpperCase())
}

export function aborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError'
}
