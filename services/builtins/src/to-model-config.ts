import {
  declareInput,
  declareOutput,
  emptyModelConfig,
  type ModelConfig,
  normaliseModelConfig,
} from '@tutti/model-config'
import { formatShape } from '@tutti/tensor'
import { canonicalJson } from './canonical-json.ts'
import { leastBytes, MAX_OUTPUT_BYTES } from './output-bytes.ts'
import { type BuiltinStep, findBuiltin } from './parse-builtin.ts'
import type { BuiltinFault, FeedingTensor, Ports } from './ports.ts'
import { signatureOf } from './signature.ts'

/** The `backend` of configurations that are computed for built-in steps. No file may have it. */
export const BUILTIN_BACKEND = 'builtin'
/** The parameter of such a configuration with the name and the options of the built-in. */
export const BUILTIN_PARAMETER = 'builtin'
/** Executions of a built-in at the same time in a process, as of other models on the CPU. */
const INSTANCES = 2

/** The configuration of a step; without it and without faults if it depends on tensors that are not known. */
export interface BuiltinConfig {
  readonly config?: ModelConfig
  readonly faults: readonly BuiltinFault[]
}

/**
 * Computes the configuration that makes a built-in step a model.
 *
 * @param o.modelName - name of the model.
 * @param o.inputs - the tensors that feed it, by input.
 */
export function toModelConfig(
  { name, options }: BuiltinStep,
  o: { readonly modelName: string; readonly inputs: ReadonlyMap<string, FeedingTensor> },
): BuiltinConfig {
  const builtin = findBuiltin(name)
  if (builtin === undefined) throw new TypeError(`there is no built-in ${name}`)
  const { ports, faults } = signatureOf(builtin, options, o.inputs)
  if (ports === undefined) return { faults }
  const large = largeOutput(ports)
  if (large !== undefined) return { faults: [large] }
  const group = { name: '', kind: 'KIND_CPU', count: INSTANCES, gpus: [], host_policy: '' } as const
  const config = normaliseModelConfig({
    ...emptyModelConfig(o.modelName),
    backend: BUILTIN_BACKEND,
    input: ports.inputs.map(declareInput),
    output: ports.outputs.map(declareOutput),
    instance_group: [{ ...group, secondary_devices: [], profile: [], passive: false }],
    parameters: { [BUILTIN_PARAMETER]: { string_value: canonicalJson({ name, options }) } },
  })
  return { config, faults: [] }
}

/** Finds an output that no request can have, as far as its extents are known. One that is not counts as 1. */
function largeOutput({ outputs }: Ports): BuiltinFault | undefined {
  const large = outputs.find((port) => leastBytes(port) > MAX_OUTPUT_BYTES)
  if (large === undefined) return undefined
  return {
    path: `outputs.${large.name}`,
    got: `${leastBytes(large)} bytes of ${large.datatype} ${formatShape(large.dims)}`,
    want: `at most ${MAX_OUTPUT_BYTES} bytes`,
  }
}
