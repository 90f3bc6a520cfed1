import { z } from 'zod'
import { axisOption, commonExtent, toAxis } from '../axes.ts'
import { onnxBuiltin } from '../builtin.ts'
import { joinedValues, takeJoined } from './joined-inputs.ts'

/** Joins tensors along a new dimension. */
export const stack = onnxBuiltin({
  name: 'stack',
  summary: 'Joins tensors of equal dims along a new dimension.',
  options: z.strictObject({ axis: axisOption('Place of the new dimension').default(0) }),
  inputs: { 'input0, input1, …': 'up to 64 of one datatype and equal dims' },
  outputs: { output: 'the datatype of the inputs; its extent at `axis` is their number' },
  signature: ({ axis }, inputs) => {
    const ports = takeJoined(inputs)
    const [{ datatype, dims }] = ports
    const at = toAxis('axis', axis, dims.length + 1)
    const common = dims.map((_, i) => commonExtent(ports, i))
    return [{ name: 'output', datatype, dims: common.toSpliced(at, 0, ports.length) }]
  },
  build: ({ axis }, graph) => {
    const at = graph.list(axis)
    const values = joinedValues(graph).map((value) => graph.op('Unsqueeze', [value, at]))
    graph.output('output', graph.op('Concat', values, { axis }))
  },
  arithmetic: [
    { case: 'all', equals: '`numpy.stack([input0, input1, …], axis)`', tolerance: 'none' },
  ],
})
