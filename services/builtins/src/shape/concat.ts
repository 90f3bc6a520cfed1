import { z } from 'zod'
import { axisOption, commonExtent, toAxis } from '../axes.ts'
import { onnxBuiltin } from '../builtin.ts'
import { joinedValues, takeJoined } from './joined-inputs.ts'

/** Joins tensors along a dimension that they have. */
export const concat = onnxBuiltin({
  name: 'concat',
  summary: 'Joins tensors along a dimension that they have.',
  options: z.strictObject({ axis: axisOption('Dimension along which they are joined').default(0) }),
  inputs: { 'input0, input1, …': 'up to 64 of one datatype, with equal dims but for `axis`' },
  outputs: { output: 'the datatype of the inputs; its extent at `axis` is the sum of theirs' },
  signature: ({ axis }, inputs) => {
    const ports = takeJoined(inputs)
    const [{ datatype, dims }] = ports
    const at = toAxis('axis', axis, dims.length)
    const extents = ports.map((port) => port.dims[at] ?? -1)
    const sum = extents.includes(-1) ? -1 : extents.reduce((all, extent) => all + extent, 0)
    const joined = dims.map((_, i) => (i === at ? sum : commonExtent(ports, i)))
    return [{ name: 'output', datatype, dims: joined }]
  },
  build: ({ axis }, graph) => {
    graph.output('output', graph.op('Concat', joinedValues(graph), { axis }))
  },
  arithmetic: [
    { case: 'all', equals: '`numpy.concatenate([input0, input1, …], axis)`', tolerance: 'none' },
  ],
})
