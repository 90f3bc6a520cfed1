import type { Datatype } from '@tutti/tensor'
import { MAX_RANK } from '../axes.ts'
import type { InputDemands } from '../input-reader.ts'

/** Demands on a picture, or a stack of pictures: its last three dimensions are height, width and channels. */
export const IMAGE = { rank: [3, MAX_RANK] } as const satisfies InputDemands
/** Datatypes of pictures whose pixels are computed with. */
export const PIXELS = ['UINT8', 'UINT16', 'FP16', 'FP32'] as const satisfies readonly Datatype[]
/** Most pixels of a side that an option can ask for. */
export const MAX_SIDE = 16_384

/** Moves the last of the last three dimensions before the other two. */
export function toChannelsFirst(dims: readonly number[]): number[] {
  const [height = -1, width = -1, channels = -1] = dims.slice(-3)
  return [...dims.slice(0, -3), channels, height, width]
}

/** Returns the dims of pictures with another height and width. */
export function withSides(dims: readonly number[], [height, width]: readonly [number, number]) {
  return [...dims.slice(0, -3), height, width, dims.at(-1) ?? -1]
}
