import {
  BUILTIN_BACKEND,
  buildModel,
  builtinOf,
  type ConfiguredBuiltin,
  INPUT_PREFIX,
  isCodeBuiltin,
} from '@tutti/builtins'
import { bug } from '@tutti/errors'
import type { ModelVersionSource } from '@tutti/model-config'
import type { Engine, EngineOptions, LoadedModel } from '../engine.ts'
import { isOnnxEngine } from '../onnxruntime/onnx-engine.ts'
import { startInstances } from '../start-instances.ts'
import { CheckedModel } from './checked-model.ts'
import { type CodeInstance, CodeModel } from './code/code-model.ts'
import { openCode, runsOnThread } from './code/code-table.ts'
import { CodeThread } from './code/code-thread.ts'

/**
 * Makes the engine of built-in steps, whose configurations are computed and in no file. Graphs of ONNX operators run as ONNX models do;
 * the code of the others is in `code`.
 *
 * @param o.onnx - opens the engine of ONNX models, whose threads the graphs share. Called with the first graph.
 */
export function createBuiltinEngine(o: {
  readonly onnx: () => Promise<Engine | undefined>
}): Engine {
  return {
    backend: BUILTIN_BACKEND,
    inspect: () => Promise.reject(bug('a built-in has no file')),
    complete: ({ config }) => Promise.resolve(config),
    load: async (source, options) => {
      const builtin = builtinOf(source.config)
      if (builtin === undefined) throw bug(`model ${source.name} is no built-in`)
      const loading = { source, builtin, options }
      const isGraph = builtin.builtin.kind === 'onnx'
      const model = isGraph ? loadGraph(await o.onnx(), loading) : openInstances(loading)
      return new CheckedModel(await model, builtin)
    },
  }
}

interface Loading {
  readonly source: ModelVersionSource
  readonly builtin: ConfiguredBuiltin
  readonly options: EngineOptions
}

function loadGraph(
  onnx: Engine | undefined,
  { source, builtin, options }: Loading,
): Promise<LoadedModel> {
  if (onnx === undefined || !isOnnxEngine(onnx)) throw bug('there is no engine of ONNX models')
  // The graph has all that the parameter says.
  const config = { ...source.config, parameters: {} }
  const file = buildModel(builtin)
  return onnx.loadBytes({ name: source.name, file, config, inputPrefix: INPUT_PREFIX }, options)
}

async function openInstances({ source, builtin, options: o }: Loading): Promise<LoadedModel> {
  const { builtin: step, options } = builtin
  if (!isCodeBuiltin(step)) throw bug(`built-in ${step.name} has no code`)
  // A step that names no model has no folder, and '' would be the one that the process was started in.
  const folders = [source.versionDirectory, source.modelDirectory]
  const place = { directories: folders.filter((folder) => folder !== '') }
  const open = async (): Promise<CodeInstance> => {
    if (!runsOnThread(step.name)) {
      return { code: await openCode(step.name, options, place), close: async () => {} }
    }
    const thread = await CodeThread.open({ name: step.name, options, place })
    return { code: thread, close: () => thread.close() }
  }
  return new CodeModel(await startInstances(Array.from({ length: o.instances }), open))
}
