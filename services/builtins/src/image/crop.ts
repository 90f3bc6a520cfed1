import { z } from 'zod'
import { onnxBuiltin } from '../builtin.ts'
import { MOST } from '../datatypes.ts'
import { IMAGE, withSides } from './image-dims.ts'
import { openPictures, outputPictures } from './pixels.ts'

/** Cuts one box out of pictures, without scaling. */
export const crop = onnxBuiltin({
  name: 'crop',
  summary:
    'Cuts one box out of pictures, without scaling it; `cropBoxes` cuts out many of one size.',
  options: z.strictObject({}),
  inputs: {
    image: 'any datatype but BF16, [..., H, W, C]',
    box: 'FP16, FP32, INT32 or INT64, [4]: corners x1, y1, x2, y2 in pixels; fractions are cut off',
  },
  outputs: {
    image: 'as `image`, with the height and width of the box, as far as it is in the picture',
  },
  signature: (_options, inputs) => {
    const { datatype, dims } = inputs.take('image', { ...IMAGE, datatypes: MOST })
    inputs.take('box', { datatypes: ['FP16', 'FP32', 'INT32', 'INT64'], rank: 1, last: [4] })
    return [{ name: 'image', datatype, dims: withSides(dims, [-1, -1]) }]
  },
  build: (_options, graph) => {
    const { value } = openPictures(graph, 'image')
    const whole = graph.cast(graph.input('box'), 'INT64')
    const corners = graph.op('Max', [whole, graph.scalar('INT64', 0)])
    const corner = (x: number): string =>
      graph.op('Gather', [corners, graph.list(x + 1, x)], { axis: 0 })
    const cut = graph.op('Slice', [value, corner(0), corner(2), graph.list(1, 2)])
    outputPictures(graph, 'image', 'image', cut)
  },
  arithmetic: [
    {
      case: 'all',
      equals: '`x[..., y1:y2, x1:x2, :]` with `x1, y1, x2, y2 = numpy.maximum(box.astype(int), 0)`',
      tolerance: 'none',
    },
  ],
})
