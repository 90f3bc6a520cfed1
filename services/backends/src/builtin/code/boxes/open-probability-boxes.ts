import { MAX_PICTURE_SIDE, MAX_RUNS, type OptionsOf } from '@tutti/builtins'
import { floatsOf, inputOf, integersOf, misfit, outputOf } from '../code-inputs.ts'
import type { OpenedCode } from '../code-step.ts'
import { boxesOfMap, type ScoredBox } from './map-boxes.ts'
import { TooManyRuns } from './regions.ts'

/** Opens `probabilityBoxes`. */
export function openProbabilityBoxes(options: OptionsOf<'probabilityBoxes'>): OpenedCode {
  return {
    run: (inputs) => {
      const map = inputOf(inputs, 'map')
      const [height = 0, width = 0] = map.shape.slice(-2)
      const size = integersOf(inputOf(inputs, 'size'))
      const [pictureHeight = 0, pictureWidth = 0] = size
      if (size.some((extent) => extent < 1 || extent > MAX_PICTURE_SIDE)) {
        throw misfit('size', `[${size.join(', ')}]`, `1 to ${MAX_PICTURE_SIDE} each`)
      }
      const picture = { width: pictureWidth, height: pictureHeight }
      const found = findBoxes({ width, height, values: floatsOf(map) }, picture, options)
      const corners = Float32Array.from(found.flatMap(({ corners: one }) => one))
      const scores = Float32Array.from(found, ({ score }) => score)
      const count = found.length
      return [outputOf('boxes', [count, 4, 2], corners), outputOf('scores', [count], scores)]
    },
  }
}

/** @throws ServeError INVALID_REQUEST for a map of noise, whose regions take more memory than there is. */
function findBoxes(...[map, ...rest]: Parameters<typeof boxesOfMap>): readonly ScoredBox[] {
  try {
    return boxesOfMap(map, ...rest)
  } catch (error) {
    if (!(error instanceof TooManyRuns)) throw error
    const got = `more than ${MAX_RUNS} runs of pixels on one side of the threshold`
    throw misfit('map', got, 'regions, such as of texts', error)
  }
}
