/** JSON as the server packs it, without arrays. */
export function packed(values: object): ArrayBuffer {
  const head = new TextEncoder().encode(JSON.stringify({ ...values, arrays: {} }))
  const found = new ArrayBuffer(Math.ceil((4 + head.length) / 8) * 8)
  new DataView(found).setUint32(0, head.length, true)
  new Uint8Array(found).set(head, 4)
  return found
}
