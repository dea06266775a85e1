/** A drawing (SVG) as a picture (PNG), two pixels for one. */

import { Refused } from '../lib/api'

const FINE = 2
/** What browsers draw at most. */
const SIDE = 16_000

export async function rendered(svg: string): Promise<Blob> {
  const address = URL.createObjectURL(new Blob([svg], { type: 'image/svg+xml' }))
  try {
    const image = new Image()
    image.src = address
    await image.decode()
    const fine = Math.min(FINE, SIDE / Math.max(image.naturalWidth, image.naturalHeight))
    const canvas = document.createElement('canvas')
    canvas.width = Math.round(image.naturalWidth * fine)
    canvas.height = Math.round(image.naturalHeight * fine)
    canvas.getContext('2d')!.drawImage(image, 0, 0, canvas.width, canvas.height)
    return await new Promise((give, refuse) => canvas.toBlob((blob) => (blob ? give(blob) : refuse(new Refused('The picture is too large.')))))
  } finally {
    URL.revokeObjectURL(address)
  }
}
