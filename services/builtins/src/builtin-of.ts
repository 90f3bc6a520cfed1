import { bug } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import { fromConfigDatatype } from '@tutti/tensor'
import type { Builtin } from './builtin.ts'
import { OnnxGraph } from './onnx/onnx-graph.ts'
import { findBuiltin, parseBuiltin } from './parse-builtin.ts'
import type { FeedingTensor, Ports } from './ports.ts'
import { signatureOf } from './signature.ts'
import { BUILTIN_BACKEND, BUILTIN_PARAMETER } from './to-model-config.ts'

/** A built-in step, read from its configuration. */
export interface ConfiguredBuiltin {
  readonly builtin: Builtin
  readonly options: Readonly<Record<string, unknown>>
  readonly ports: Ports
}

/**
 * Reads the built-in of a configuration that `toModelConfig` has made.
 *
 * @returns undefined for the configuration of another backend.
 * @throws ServeError INTERNAL if the configuration was not made so.
 */
export function builtinOf(config: ModelConfig): ConfiguredBuiltin | undefined {
  if (config.backend !== BUILTIN_BACKEND) return undefined
  const { name, options } = readParameter(config)
  const { step, faults } = parseBuiltin({ ...options, name })
  const builtin = step && findBuiltin(step.name)
  if (step === undefined || builtin === undefined) throw misfit(config, JSON.stringify(faults))
  const inputs = config.input.map(({ name: input, data_type: type, dims }) => {
    return [input, { datatype: fromConfigDatatype(type), dims }] as [string, FeedingTensor]
  })
  const signature = signatureOf(builtin, step.options, new Map(inputs))
  const { ports } = signature
  if (ports === undefined) throw misfit(config, JSON.stringify(signature.faults))
  return { builtin, options: step.options, ports }
}

/** @returns the ONNX model of a built-in. The names of its inputs begin with INPUT_PREFIX. */
export function buildModel({
  builtin,
  options,
  ports,
}: ConfiguredBuiltin): Uint8Array<ArrayBuffer> {
  if (builtin.kind !== 'onnx') throw bug(`built-in ${builtin.name} is no graph`)
  const graph = new OnnxGraph(ports)
  builtin.build(options, graph)
  return graph.finish(builtin.name)
}

function readParameter(config: ModelConfig): { name: unknown; options: object } {
  const text = config.parameters[BUILTIN_PARAMETER]?.string_value
  if (text === undefined) throw misfit(config, 'no parameter')
  const { name, options } = JSON.parse(text)
  return { name, options }
}

function misfit({ name }: ModelConfig, found: string): Error {
  return bug(`the configuration of built-in step ${name} does not fit: ${found}`)
}
