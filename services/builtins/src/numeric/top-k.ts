import { z } from 'zod'
import { axisOption, toAxis, withExtent } from '../axes.ts'
import { onnxBuiltin } from '../builtin.ts'
import { onFloats } from '../datatypes.ts'
import { refuseOption } from '../input-reader.ts'

const SORTABLE = ['FP16', 'FP32', 'FP64', 'INT32', 'INT64'] as const
const MAX_K = 2 ** 20

/** Finds the greatest elements. */
export const topK = onnxBuiltin({
  name: 'topK',
  summary: 'Finds the k greatest or least elements along an axis, in their order.',
  options: z.strictObject({
    k: z.int().min(1).max(MAX_K).describe('Number of elements; an input with fewer is an error'),
    axis: axisOption('Dimension along which they are searched').default(-1),
    largest: z.boolean().default(true).describe('Whether the greatest are searched, or the least'),
  }),
  inputs: { input: 'FP16, FP32, FP64, INT32 or INT64, of any dims' },
  outputs: {
    values: 'as `input`, with extent `k` at `axis`',
    indices: 'INT64, their places along `axis`',
  },
  signature: ({ k, axis }, inputs) => {
    const { datatype, dims } = inputs.take('input', { datatypes: SORTABLE })
    const at = toAxis('axis', axis, dims.length)
    const extent = dims[at] ?? -1
    if (extent !== -1 && k > extent) refuseOption('k', `${k}`, `at most ${extent}, the extent`)
    const found = withExtent(dims, at, k)
    return [
      { name: 'values', datatype, dims: found },
      { name: 'indices', datatype: 'INT64', dims: found },
    ]
  },
  build: ({ k, axis, largest }, graph) => {
    const { datatype } = graph.port('input')
    const search = (input: string): string => {
      const attributes = { axis, largest: largest ? 1 : 0, sorted: 1 }
      const [values = '', indices = ''] = graph.ops('TopK', 2, [input, graph.list(k)], attributes)
      graph.output('indices', indices)
      return values
    }
    const input = graph.input('input')
    const isFloat = datatype.startsWith('FP')
    graph.output('values', isFloat ? onFloats(graph, input, datatype, search) : search(input))
  },
  arithmetic: [
    {
      case: 'all',
      equals:
        'the first k of `numpy.argsort(-x, axis, kind="stable")`, or of `argsort(x)` for the least',
      tolerance: 'none',
      except: 'NaN, whose place is not defined',
    },
  ],
})
