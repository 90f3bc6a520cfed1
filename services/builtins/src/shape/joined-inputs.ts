import { MOST } from '../datatypes.ts'
import type { InputReader } from '../input-reader.ts'
import { PortFault } from '../input-reader.ts'
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
    if (ports.length === MAX_JOINED) {
      const want = `at most ${MAX_JOINED} inputs`
      throw new PortFault({ path: `inputs.${name}`, got: 'a tensor', want })
    }
    ports.push(inputs.take(name, { datatypes, rank }))
  }
  return ports
}

export function joinedValues(graph: OnnxGraph): readonly Value[] {
  const values: Value[] = []
  while (graph.has(`input${values.length}`)) values.push(graph.input(`input${values.length}`))
  return values
}

/** The extent that all ports have at a place; -1 if none is known. @throws PortFault if they differ. */
export function commonExtent(ports: readonly Port[], at: number): number {
  let common = -1
  for (const { name, dims } of ports) {
    const extent = dims[at] ?? -1
    if (extent === -1 || extent === common) continue
    if (common !== -1) {
      const got = `dims [${dims.join(',')}]`
      throw new PortFault({ path: `inputs.${name}`, got, want: `extent ${common} at axis ${at}` })
    }
    common = extent
  }
  return common
}
