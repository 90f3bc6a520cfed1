import type { Datatype } from '@tutti/tensor'
import { MAX_RANK } from '../axes.ts'
import { type InputDemands, type InputReader, refuseDims } from '../input-reader.ts'
import type { Port } from '../ports.ts'

/** Demands on a picture, or a stack of pictures: its last three dimensions are height, width and channels. */
export const IMAGE = { rank: [3, MAX_RANK] } as const satisfies InputDemands
/** Datatypes of pictures whose pixels are computed with. */
export const PIXELS = ['UINT8', 'UINT16', 'FP16', 'FP32'] as const satisfies readonly Datatype[]
/** Most pixels of a side that an option can ask for. */
export const MAX_SIDE = 16_384

/** Takes pictures whose pixels are computed with: there must be some. @throws PortFault */
export function takePictures(inputs: InputReader, name: string): Port {
  const port = inputs.take(name, { ...IMAGE, datatypes: PIXELS })
  if (!port.dims.slice(-3, -1).includes(0)) return port
  return refuseDims(port, 'a height and a width of at least 1')
}

/** Moves the last of the last three dimensions before the other two. */
export function toChannelsFirst(dims: readonly number[]): number[] {
  const [height = -1, width = -1, channels = -1] = dims.slice(-3)
  return [...dims.slice(0, -3), channels, height, width]
}

/** Moves the first of the last three dimensions behind the other two. */
export function toChannelsLast(dims: readonly number[]): number[] {
  const [channels = -1, height = -1, width = -1] = dims.slice(-3)
  return [...dims.slice(0, -3), height, width, channels]
}

/** Returns the dims of pictures with another height and width. */
export function withSides(dims: readonly number[], [height, width]: readonly [number, number]) {
  return [...dims.slice(0, -3), height, width, dims.at(-1) ?? -1]
}
