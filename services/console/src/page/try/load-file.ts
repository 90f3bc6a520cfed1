import type { DraftFile, FilePicture } from './request-input.ts'

/** Reads a file that the user chose. @throws Error if the browser cannot read it. */
export async function loadFile(file: File): Promise<DraftFile> {
  const bytes = new Uint8Array(await file.arrayBuffer())
  return { name: file.name, bytes, picture: await loadPicture(file) }
}

async function loadPicture(file: Blob): Promise<FilePicture | undefined> {
  const bitmap = await toBitmap(file)
  if (bitmap === undefined) return undefined
  return {
    width: bitmap.width,
    height: bitmap.height,
    draw: (width, height) => {
      const canvas = new OffscreenCanvas(width, height)
      const context = canvas.getContext('2d', { willReadFrequently: true })
      if (context === null) throw new Error('this browser draws no pictures')
      context.fillStyle = '#fff'
      context.fillRect(0, 0, width, height)
      context.imageSmoothingQuality = 'high'
      context.drawImage(bitmap, 0, 0, width, height)
      return context.getImageData(0, 0, width, height).data
    },
  }
}

/** Decodes a picture. Resolves with undefined if the browser cannot decode it; SVG is not decoded. */
export function toBitmap(file: Blob): Promise<ImageBitmap | undefined> {
  return createImageBitmap(file, { colorSpaceConversion: 'none' }).catch(() => undefined)
}

/** Copies parts into a blob, since browsers refuse views of shared memory. */
export function toBlob(parts: readonly (Uint8Array | string)[]): Blob {
  return new Blob(parts.map((part) => (typeof part === 'string' ? part : new Uint8Array(part))))
}

/** Downloads a file of these parts with the browser. */
export function download(name: string, parts: readonly (Uint8Array | string)[]): void {
  const url = URL.createObjectURL(toBlob(parts))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
