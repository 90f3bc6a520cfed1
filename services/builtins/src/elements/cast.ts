import type { Datatype } from '@tutti/tensor'
import { z } from 'zod'
import { onnxBuiltin } from '../builtin.ts'
import { INTEGERS, isFloat, NUMBERS, rangeOf } from '../datatypes.ts'
import { refuseOption } from '../input-reader.ts'
import type { OnnxGraph, Value } from '../onnx/onnx-graph.ts'

const CASTABLE = [...NUMBERS, 'BOOL', 'BF16'] as const

/** Converts a tensor to another datatype. */
export const cast = onnxBuiltin({
  name: 'cast',
  summary: 'Converts a tensor to another datatype.',
  options: z.strictObject({
    datatype: z.enum(CASTABLE).describe('Datatype of the output'),
    rounding: z
      .enum(['truncate', 'nearest'])
      .default('truncate')
      .describe(
        'How a float becomes an integer: `truncate` cuts the fraction off, `nearest` rounds, ties to even. Has no effect between other datatypes, for which only `truncate` is accepted',
      ),
  }),
  inputs: { input: 'any datatype but BYTES, of any dims' },
  outputs: { output: '`datatype`, with the dims of `input`' },
  signature: ({ datatype, rounding }, inputs) => {
    const port = inputs.take('input', { datatypes: CASTABLE })
    if (rounding === 'nearest' && !makesInteger(port.datatype, datatype)) {
      const got = `"nearest" from ${port.datatype} to ${datatype}`
      refuseOption('rounding', got, 'truncate, or an integer of a float')
    }
    return [{ name: 'output', datatype, dims: port.dims }]
  },
  build: ({ datatype, rounding }, graph) => {
    const from = graph.port('input').datatype
    const input = graph.input('input')
    const value = makesInteger(from, datatype)
      ? toRange(graph, { input, from, to: datatype, rounding })
      : input
    graph.output('output', graph.cast(value, datatype))
  },
  arithmetic: [
    {
      case: 'between integers, between floats, an integer to a float, from and to BOOL',
      equals: '`ndarray.astype`',
      tolerance: 'none',
    },
    {
      case: 'a float to an integer, `truncate`',
      equals: '`ndarray.astype`',
      tolerance: 'none',
      except:
        'values outside of the range of the integer, for which NumPy defines no result: they become its least value or the greatest one of its range that the float has exactly (2147483520 of FP32 for INT32), and NaN becomes 0',
    },
    {
      case: 'a float to an integer, `nearest`',
      equals: '`numpy.rint(x).astype`',
      tolerance: 'none',
      except: 'the same',
    },
  ],
})

const isBrainOrFloat = (datatype: Datatype): boolean => isFloat(datatype) || datatype === 'BF16'

function makesInteger(from: Datatype, to: Datatype): boolean {
  return isBrainOrFloat(from) && INTEGERS.some((one) => one === to)
}

interface Narrowing {
  readonly input: Value
  readonly from: Datatype
  readonly to: Datatype
  readonly rounding: 'truncate' | 'nearest'
}

/** Brings floats into the range of an integer: a conversion by C has no result beyond. */
function toRange(graph: OnnxGraph, { input, from, to, rounding }: Narrowing): Value {
  const float = from === 'FP64' ? 'FP64' : 'FP32'
  const value = graph.cast(input, float)
  const [least, most] = exactRange(to, float)
  const rounded = rounding === 'nearest' ? graph.op('Round', [value]) : value
  const bounds = [graph.scalar(float, least), graph.scalar(float, most)]
  const clipped = graph.op('Clip', [rounded, ...bounds])
  return graph.op('Where', [graph.op('IsNaN', [value]), graph.scalar(float, 0), clipped])
}

/** The integers that a float of so many bits has exactly and that are in the range. */
function exactRange(to: Datatype, float: 'FP32' | 'FP64'): readonly [number, number] {
  const [least, greatest] = rangeOf(to)
  const bits = Math.log2(greatest + 1)
  const precision = float === 'FP32' ? 24 : 53
  return [least, 2 ** bits - 2 ** Math.max(bits - precision, 0)]
}
