import { MOST } from '../datatypes.ts'
import { type InputReader, refuseOption } from '../input-reader.ts'
import type { OnnxGraph, Value } from '../onnx/onnx-graph.ts'
import type { Port } from '../ports.ts'

/** Most tensors that are joined in one step. */
export const MAX_JOINED = 64

/** Takes `input0`, `input1` and so on, which have one datatype and one rank. @throws PortFault */
export function takeJoined(inputs: InputReader): readonly [Port, ...Port[]] {
  const first = inputs.take('input0', { datatypes: MOST })
  const { datatypes, rank } = { datatypes: [first.datatype], rank: first.dims.length }
  const ports: [Port, ...Port[]] = [first]
  while (inputs.has(`input${ports.length}`)) {
    const name = `input${ports.length}`
    if (ports.length === MAX_JOINED)
      refuseOption(`inputs.${name}`, 'a tensor', `at most ${MAX_JOINED} inputs`)
    ports.push(inputs.take(name, { datatypes, rank }))
  }
  return ports
}

export function joinedValues(graph: OnnxGraph): readonly Value[] {
  const values: Value[] = []
  while (graph.has(`input${values.length}`)) values.push(graph.input(`input${values.length}`))
  return values
}
