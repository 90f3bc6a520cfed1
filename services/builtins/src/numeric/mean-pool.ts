import { z } from 'zod'
import { commonExtent, MAX_RANK } from '../axes.ts'
import { onnxBuiltin } from '../builtin.ts'
import { FLOATS, INTEGERS, onFloats } from '../datatypes.ts'

/** The least sum of a mask, as sentence-transformers has it, so that no row is divided by 0. */
const LEAST = 1e-9

/** Averages the embeddings of tokens. */
export const meanPool = onnxBuiltin({
  name: 'meanPool',
  summary:
    'Averages the embeddings of the tokens that a mask names, for one embedding of each text.',
  options: z.strictObject({}),
  inputs: {
    embeddings: 'FP16 or FP32, [..., S, D]: one for each of S tokens',
    mask: 'an integer, a float or BOOL, [..., S]: 1 for a token, 0 for padding',
  },
  outputs: { embedding: 'as `embeddings`, [..., D]; zeros where the mask names no token' },
  signature: (_options, inputs) => {
    const demands = { datatypes: ['FP16', 'FP32'], rank: [2, MAX_RANK] } as const
    const embeddings = inputs.take('embeddings', demands)
    const { datatype, dims } = embeddings
    const masks = [...FLOATS, ...INTEGERS, 'BOOL'] as const
    const mask = inputs.take('mask', { datatypes: masks, rank: dims.length - 1 })
    mask.dims.forEach((_, i) => commonExtent([embeddings, mask], i))
    return [{ name: 'embedding', datatype, dims: dims.toSpliced(-2, 1) }]
  },
  valueOfNothing: () => 0,
  build: (_options, graph) => {
    const { datatype } = graph.port('embeddings')
    const mask = graph.cast(graph.input('mask'), 'FP32')
    const pooled = onFloats(graph, graph.input('embeddings'), datatype, (embeddings) => {
      const column = graph.op('Unsqueeze', [mask, graph.list(-1)])
      const masked = graph.op('Mul', [embeddings, column])
      const sum = graph.op('ReduceSum', [masked, graph.list(-2)], { keepdims: 0 })
      const count = graph.op('ReduceSum', [column, graph.list(-2)], { keepdims: 0 })
      return graph.op('Div', [sum, graph.op('Max', [count, graph.scalar('FP32', LEAST)])])
    })
    graph.output('embedding', pooled)
  },
  arithmetic: [
    {
      case: 'FP32',
      equals:
        '`(x * m).sum(-2) / numpy.maximum(m.sum(-2), 1e-9)` with `m = mask[..., None]`, as sentence-transformers does',
      tolerance: '1e-5 of the greatest absolute value',
    },
    { case: 'FP16', equals: 'the same in FP32, rounded to FP16', tolerance: '1e-3 relative' },
  ],
})
