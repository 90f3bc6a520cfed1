import { z } from 'zod'
import { onnxBuiltin } from '../builtin.ts'
import { MOST } from '../datatypes.ts'
import { refuseOption } from '../input-reader.ts'
import { IMAGE, MAX_SIDE, withSides } from './image-dims.ts'
import { openPictures, outputPictures } from './pixels.ts'

const side = z.int().min(1).max(MAX_SIDE)

/** Cuts out the middle of pictures. */
export const centerCrop = onnxBuiltin({
  name: 'centerCrop',
  summary: 'Cuts out the middle of pictures.',
  options: z.strictObject({
    width: side.describe('Width of the output in pixels, at most that of the input'),
    height: side.describe('Height of the output in pixels, at most that of the input'),
  }),
  inputs: { image: 'any datatype but BF16, [..., H, W, C]' },
  outputs: { image: 'as `image`, [..., height, width, C]' },
  signature: ({ width, height }, inputs) => {
    const { datatype, dims } = inputs.take('image', { ...IMAGE, datatypes: MOST })
    const [across = -1, along = -1] = [dims.at(-2), dims.at(-3)]
    for (const [path, size, extent] of [
      ['width', width, across],
      ['height', height, along],
    ] as const) {
      if (extent === -1 || size <= extent) continue
      refuseOption(path, `${size}`, `at most ${extent}, as the input has`)
    }
    return [{ name: 'image', datatype, dims: withSides(dims, [height, width]) }]
  },
  build: ({ width, height }, graph) => {
    const { value, sides } = openPictures(graph, 'image')
    const target = graph.constant('FP64', [height, width])
    const rest = graph.op('Mul', [graph.op('Sub', [sides, target]), graph.scalar('FP64', 0.5)])
    const start = graph.cast(graph.op('Round', [rest]), 'INT64')
    const stop = graph.op('Add', [start, graph.list(height, width)])
    const cropped = graph.op('Slice', [value, start, stop, graph.list(1, 2)])
    outputPictures(graph, 'image', 'image', cropped)
  },
  arithmetic: [
    {
      case: 'all',
      equals:
        '`torchvision.transforms.functional.center_crop`: `x[top:top + height, left:left + width]` with `top = round((H - height) / 2)`, ties to even',
      tolerance: 'none',
      except: 'a picture that is smaller, which is an error',
    },
  ],
})
