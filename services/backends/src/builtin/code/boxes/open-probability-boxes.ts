import type { OptionsOf } from '@tutti/builtins'
import { formatShape } from '@tutti/tensor'
import { floatsOf, inputOf, integersOf, misfit } from '../code-inputs.ts'
import type { OpenedCode } from '../code-step.ts'
import { boxesOfMap, type ScoredBox } from './map-boxes.ts'
import { MAX_RUNS, TooManyRuns } from './regions.ts'

/** Largest extent of a picture. */
const MAX_SIDE = 2 ** 24

/** Opens `probabilityBoxes`. */
export function openProbabilityBoxes(options: OptionsOf<'probabilityBoxes'>): OpenedCode {
  return {
    run: (inputs) => {
      const map = inputOf(inputs, 'map')
      if (map.shape.slice(0, -2).some((extent) => extent !== 1)) {
        throw misfit('map', `shape ${formatShape(map.shape)}`, 'one map')
      }
      const [height = 0, width = 0] = map.shape.slice(-2)
      const size = integersOf(inputOf(inputs, 'size'))
      const [pictureHeight = 0, pictureWidth = 0] = size
      if (size.some((extent) => extent < 1 || extent > MAX_SIDE)) {
        throw misfit('size', `[${size.join(', ')}]`, `1 to ${MAX_SIDE} each`)
      }
      const picture = { width: pictureWidth, height: pictureHeight }
      const found = findBoxes({ width, height, values: floatsOf(map) }, picture, options)
      const corners = Float32Array.from(found.flatMap(({ corners: one }) => one))
      const scores = Float32Array.from(found, ({ score }) => score)
      const count = found.length
      return [
        {
          name: 'boxes',
          datatype: 'FP32',
          shape: [count, 4, 2],
          data: new Uint8Array(corners.buffer),
        },
        { name: 'scores', datatype: 'FP32', shape: [count], data: new Uint8Array(scores.buffer) },
      ]
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
