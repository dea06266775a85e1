import { describe, expect, it } from 'vitest'
import { unpacked } from '../src/lib/payload'

/** The server's form, written out by hand. */
function packed(values: object, arrays: Record<string, { type: string; shape: number[]; bytes: Uint8Array }>): ArrayBuffer {
  const pad = (size: number) => (8 - (size % 8)) % 8
  let begin = 0
  const places: Record<string, object> = {}
  for (const [name, { type, shape, bytes }] of Object.entries(arrays)) {
    places[name] = { type, shape, begin }
    begin += bytes.length + pad(bytes.length)
  }
  const head = new TextEncoder().encode(JSON.stringify({ ...values, arrays: places }))
  const first = 4 + head.length + pad(4 + head.length)
  const whole = new Uint8Array(first + begin)
  new DataView(whole.buffer).setUint32(0, head.length, true)
  whole.set(head, 4)
  let at = first
  for (const { bytes } of Object.values(arrays)) {
    whole.set(bytes, at)
    at += bytes.length + pad(bytes.length)
  }
  return whole.buffer
}

describe('a payload', () => {
  it('gives values and arrays of every type, whatever the length of the text before them', () => {
    for (const text of ['', 'a', 'ä€😀', 'xxxxxxx']) {
      const floats = Float32Array.from([0.25, -1, 3, 1e9, 0, 7])
      const whole = packed(
        { text },
        {
          small: { type: 'uint8', shape: [3], bytes: Uint8Array.from([1, 2, 255]) },
          weight: { type: 'float32', shape: [2, 3], bytes: new Uint8Array(floats.buffer) },
          none: { type: 'int32', shape: [0], bytes: new Uint8Array(0) },
        },
      )
      const { values, arrays } = unpacked<{ text: string }>(whole)
      expect(values).toEqual({ text })
      expect([...arrays.small!.data]).toEqual([1, 2, 255])
      expect(arrays.weight!.shape).toEqual([2, 3])
      expect([...arrays.weight!.data]).toEqual([...floats])
      expect(arrays.none!.data.length).toBe(0)
    }
  })
})
