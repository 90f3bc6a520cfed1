import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { toBitmap, toBlob } from './load-file.ts'
import type { Rgba } from './pixel-values.ts'

/** Pixels that a canvas takes. */
type Drawing =
  | { readonly width: number; readonly height: number; readonly rgba: Rgba }
  | { readonly width: number; readonly height: number; readonly bitmap: ImageBitmap }

/** Smaller pictures are shown larger. */
const TINY = 128

export function Picture({ label, drawing }: { readonly label: string; readonly drawing: Drawing }) {
  const { width, height } = drawing
  const canvas = useRef<HTMLCanvasElement>(null)
  useLayoutEffect(() => {
    const context = canvas.current?.getContext('2d')
    if (!context) return
    if ('bitmap' in drawing) context.drawImage(drawing.bitmap, 0, 0)
    else
      context.putImageData(new ImageData(Uint8ClampedArray.from(drawing.rgba), width, height), 0, 0)
  }, [drawing])
  return (
    <canvas
      ref={canvas}
      role="img"
      aria-label={`${label}, ${width} x ${height} pixels`}
      class={Math.max(width, height) < TINY ? 'picture tiny' : 'picture'}
      width={width}
      height={height}
    />
  )
}

/** Shows an encoded picture. It is drawn on a canvas, so that the page loads nothing from it. */
export function EncodedPicture({
  label,
  bytes,
}: {
  readonly label: string
  readonly bytes: Uint8Array
}) {
  const [bitmap, setBitmap] = useState<ImageBitmap | null>()
  useEffect(() => {
    let isGone = false
    void toBitmap(toBlob([bytes])).then((read) => !isGone && setBitmap(read ?? null))
    return () => {
      isGone = true
    }
  }, [bytes])
  if (bitmap === undefined) return null
  if (bitmap === null) return <p class="reason">This browser cannot read the picture.</p>
  const { width, height } = bitmap
  return <Picture label={label} drawing={{ width, height, bitmap }} />
}
