import type { z } from 'zod'
import type { Builtin } from './builtin.ts'
import { InputReader, PortFault, UnknownPort } from './input-reader.ts'
import type { BuiltinFault, FeedingTensor, Ports } from './ports.ts'

/** The inputs and outputs of a built-in; without ports and faults if they depend on tensors that are not known. */
export interface Signature {
  readonly ports?: Ports
  readonly faults: readonly BuiltinFault[]
}

/** Computes the inputs and outputs of a built-in from its options and from the tensors that feed it. */
export function signatureOf(
  builtin: Builtin,
  options: z.output<Builtin['options']>,
  inputs: ReadonlyMap<string, FeedingTensor>,
): Signature {
  const reader = new InputReader(inputs)
  try {
    const outputs = builtin.signature(options, reader)
    reader.refuseOthers()
    return { ports: { inputs: reader.taken, outputs }, faults: [] }
  } catch (error) {
    if (error instanceof UnknownPort) return { faults: [] }
    if (error instanceof PortFault) return { faults: [error.fault] }
    throw error
  }
}
