import { type BuiltinFault, parseBuiltin, toModelConfig } from '@tutti/builtins'
import type { ModelConfig } from '@tutti/model-config'
import { fromConfigDatatype, type NamedTensor, type Shape, shapeMatches } from '@tutti/tensor'
import type { Test } from 'tap'
import type { LoadedModel } from '../engine.ts'
import { createEngines } from '../engines.ts'
import { executeOnce, fp32Tensor } from './execute.ts'
import { modelSource, stepRequest } from './model-source.ts'

/** A fault of a built-in, as the test sees it. */
export class Refused extends Error {
  readonly faults: readonly BuiltinFault[]
  constructor(faults: readonly BuiltinFault[]) {
    super(JSON.stringify(faults))
    this.faults = faults
  }
}

/**
 * Runs a built-in once.
 *
 * @param given - as a manifest has it.
 * @param declared - dims of the inputs where they are checked; default: those of the tensors.
 * @returns the outputs, which were checked against the signature.
 * @throws Refused for options or inputs that do not fit; the error of the run.
 */
export type RunBuiltin = (
  t: Test,
  given: unknown,
  inputs: readonly NamedTensor[],
  declared?: Readonly<Record<string, Shape>>,
) => Promise<readonly NamedTensor[]>

type LoadBuiltin = (config: ModelConfig) => Promise<LoadedModel>

/** Opens the engine of built-ins for the tests of a file. @param directory - of the files that options name. */
export async function openEngine(file: Test, directory = '/'): Promise<LoadBuiltin> {
  const engine = await createEngines().builtin?.()
  if (engine === undefined) throw new Error('there is no engine of built-ins')
  const load = (config: ModelConfig) =>
    engine.load(modelSource(directory, config), { instances: 1 })
  // Keeps a thread of the runtime alive: to start one for each case takes longer than the case.
  const kept = await load(configOf({ name: 'softmax' }, [fp32Tensor('input', [1], [0])], {}))
  file.teardown(() => kept.close())
  return load
}

/** Opens the engine, for tests that run built-ins. */
export async function openBuiltins(file: Test, directory = '/'): Promise<RunBuiltin> {
  const load = await openEngine(file, directory)
  return async (t, given, inputs, declared = {}) => {
    const config = configOf(given, inputs, declared)
    const model = await load(config)
    try {
      const [response] = await executeOnce(model, [stepRequest(inputs)])
      if (response?.error !== undefined) throw response.error
      const outputs = response?.outputs ?? []
      checkOutputs(t, config, outputs)
      // Lent memory ends with the model.
      return outputs.map((output) => ({ ...output, data: new Uint8Array(output.data) }))
    } finally {
      await model.close()
    }
  }
}

/** The configuration of a step. @throws Refused */
function configOf(
  given: unknown,
  inputs: readonly NamedTensor[],
  declared: Readonly<Record<string, Shape>>,
): ModelConfig {
  const { step, faults } = parseBuiltin(given)
  if (step === undefined) throw new Refused(faults)
  const feeding = inputs.map(({ name, datatype, shape }) => {
    return [name, { datatype, dims: declared[name] ?? shape }] as const
  })
  const made = toModelConfig(step, { modelName: step.name, inputs: new Map(feeding) })
  if (made.config === undefined) throw new Refused(made.faults)
  return made.config
}

/** Asserts that outputs are as the signature says. */
function checkOutputs(t: Test, config: ModelConfig, outputs: readonly NamedTensor[]): void {
  const declared = config.output.map(({ name, data_type: type }) => {
    return { name, datatype: fromConfigDatatype(type) }
  })
  t.same(
    outputs.map(({ name, datatype }) => ({ name, datatype })),
    declared,
    'names and datatypes',
  )
  for (const [i, { name, shape }] of outputs.entries()) {
    const dims = config.output[i]?.dims ?? []
    t.ok(shapeMatches(dims, shape), `${name}: shape [${shape.join(',')}] in [${dims.join(',')}]`)
  }
}
