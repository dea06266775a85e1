/** Numbers from the server: JSON, and arrays laid over the bytes behind it (regard/inspection/requests.py). */

export type Numbers = Float32Array | Uint8Array | Uint16Array | Int32Array

export interface Grid {
  readonly shape: readonly number[]
  readonly data: Numbers
}

export interface Payload<T> {
  readonly values: T
  readonly arrays: Readonly<Record<string, Grid>>
}

interface Place {
  type: 'float32' | 'uint8' | 'uint16' | 'int32'
  shape: number[]
  begin: number
}

const ALIGNED = 8
const KINDS = { float32: Float32Array, uint8: Uint8Array, uint16: Uint16Array, int32: Int32Array }

export function unpacked<T>(bytes: ArrayBuffer): Payload<T> {
  const length = new DataView(bytes).getUint32(0, true)
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length))) as { arrays: Record<string, Place> }
  const first = Math.ceil((4 + length) / ALIGNED) * ALIGNED
  const { arrays: places, ...values } = head
  const arrays: Record<string, Grid> = {}
  for (const [name, { type, shape, begin }] of Object.entries(places)) {
    const count = shape.reduce((product, size) => product * size, 1)
    arrays[name] = { shape, data: new KINDS[type](bytes, first + begin, count) }
  }
  return { values: values as T, arrays }
}
