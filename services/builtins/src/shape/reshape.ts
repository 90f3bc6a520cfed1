import type { Shape } from '@tutti/tensor'
import { z } from 'zod'
import { MAX_RANK } from '../axes.ts'
import { onnxBuiltin } from '../builtin.ts'
import { MOST } from '../datatypes.ts'
import { refuseOption } from '../input-reader.ts'

const MAX_EXTENT = 2 ** 31 - 1

/** Gives a tensor other dims. */
export const reshape = onnxBuiltin({
  name: 'reshape',
  summary: 'Gives a tensor other dims; its elements keep their order.',
  options: z.strictObject({
    shape: z
      .array(z.int().min(-1).max(MAX_EXTENT))
      .min(1)
      .max(MAX_RANK)
      .describe(
        'Extents of the output. One may be -1, which follows from the others; 0 keeps the extent at its place',
      ),
  }),
  inputs: { input: 'any datatype but BF16, of any dims' },
  outputs: { output: 'as `input`, with the dims `shape`' },
  signature: ({ shape }, inputs) => {
    const { datatype, dims } = inputs.take('input', { datatypes: MOST })
    return [{ name: 'output', datatype, dims: reshaped(shape, dims) }]
  },
  build: ({ shape }, graph) => {
    graph.output('output', graph.op('Reshape', [graph.input('input'), graph.list(...shape)]))
  },
  arithmetic: [
    {
      case: 'all',
      equals: '`numpy.reshape(x, shape)`',
      tolerance: 'none',
      except: '0 in `shape`, for which NumPy wants the extent of the input itself',
    },
  ],
})

const product = (extents: Shape): number => extents.reduce((count, extent) => count * extent, 1)

/** @throws PortFault if the numbers of elements cannot be equal. */
function reshaped(shape: Shape, dims: Shape): Shape {
  const got = `[${shape.join(',')}]`
  if (shape.filter((extent) => extent === -1).length > 1) refuseOption('shape', got, 'one -1')
  const kept = shape.findIndex((extent, i) => extent === 0 && i >= dims.length)
  if (kept !== -1) {
    refuseOption(`shape[${kept}]`, '0', `an extent: the input has ${dims.length} dimensions`)
  }
  const out = shape.map((extent, i) => (extent === 0 ? (dims[i] ?? -1) : extent))
  if (dims.includes(-1)) return out
  const [have, want] = [product(dims), product(out.filter((extent) => extent !== -1))]
  const inferred = have / want
  const fits = shape.includes(-1) ? Number.isInteger(inferred) : have === want
  if (!fits) refuseOption('shape', got, `dims of ${have} elements, as [${dims.join(',')}] has`)
  return out.map((extent) => (extent === -1 ? inferred : extent))
}
