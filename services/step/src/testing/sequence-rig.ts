import type { ModelConfig, SequenceBatching } from '@tutti/model-config'
import type { ExecuteOptions, InferRequest, NamedTensor } from '@tutti/tensor'
import { compileSequences } from '../sequence/build-sequences.ts'
import { createSchedulerRig } from './scheduler-rig.ts'
import { controlInput, sequenceConfig } from './sequence-builders.ts'
import { floats } from './step-builders.ts'

/** Control inputs of all kinds, with values of all datatypes. */
export const CONTROLS = [
  controlInput('START', 'START'),
  controlInput('READY', 'READY', { fp32_false_true: [0, 1] }),
  controlInput('END', 'END', { bool_false_true: [false, true] }),
  controlInput('CORRID', 'CORRID'),
]

/** A rig whose requests are checked as a step checks them. */
export function openSequenceRig(
  batching: Partial<SequenceBatching> = {},
  rest: Partial<ModelConfig> = {},
  o: { readonly instances?: number; readonly initial?: NamedTensor } = {},
) {
  const config = sequenceConfig(batching, rest)
  const initial = o.initial ?? floats('before', [1, 1])
  const sequences = compileSequences(config, new Map([[initial.name, initial]]))
  const rig = createSchedulerRig({ config, sequences, instances: o.instances ?? 1 })
  return {
    ...rig,
    check: sequences.check,
    submit: (name: string, request: InferRequest, options: Partial<ExecuteOptions> = {}) =>
      rig.submit(name, sequences.check(request), options),
    /** Lists, for each execution, the control values of its places: `start ready end id`. */
    controls: () =>
      rig.model.executions.map(({ requests }) =>
        requests.map(({ inputs }) => inputs.flatMap(toValue).join(' ')),
      ),
  }
}

/** A control input, or a state, as text; nothing for `x`. */
export function toValue({ name, datatype, data }: NamedTensor): readonly string[] {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  if (name === 'x') return []
  if (datatype === 'BYTES') return [Buffer.from(data.subarray(4)).toString()]
  if (datatype === 'BOOL') return [String(data[0] === 1)]
  if (datatype === 'FP32') return [view.getFloat32(0, true).toFixed(1)]
  return [
    datatype === 'UINT64' ? String(view.getBigUint64(0, true)) : String(view.getInt32(0, true)),
  ]
}

/** FP32 [1, 1] with this value. */
export function scalar(name: string, value: number): NamedTensor {
  return { ...floats(name, [1, 1]), data: new Uint8Array(Float32Array.of(value).buffer) }
}
