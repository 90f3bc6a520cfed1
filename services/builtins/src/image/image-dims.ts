import { MAX_RANK } from '../axes.ts'
import type { InputDemands } from '../input-reader.ts'

/** Demands on a picture, or a stack of pictures: its last three dimensions are height, width and channels. */
export const IMAGE = { rank: [3, MAX_RANK] } as const satisfies InputDemands

/** Moves the last of the last three dimensions before the other two. */
export function toChannelsFirst(dims: readonly number[]): number[] {
  const [height = -1, width = -1, channels = -1] = dims.slice(-3)
  return [...dims.slice(0, -3), channels, height, width]
}
