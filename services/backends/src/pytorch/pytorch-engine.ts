import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { ServeError } from '@tutti/errors'
import type { ModelVersionSource } from '@tutti/model-config'
import type { Engine } from '../engine.ts'
import { modelPath, pathInVersion, refuseGitLfsPointer } from '../model-file.ts'
import {
  createPythonEngine,
  type PythonEngineOptions,
  type PythonProgram,
} from '../python/python-engine.ts'

type Source = Omit<ModelVersionSource, 'revision'>

const MODEL_CLASS = fileURLToPath(new URL('../../python/tutti_torchscript.py', import.meta.url))
const DEFAULT_FILENAME = 'model.pt'

const PROGRAM: PythonProgram = {
  backend: 'pytorch',
  // Whether its PyTorch can, an instance's own process finds out: CUDA must not begin before it is forked.
  cuda: { problem: () => undefined, modelChooses: true },
  // Neither does Triton's: inputs and outputs must be configured.
  completesConfig: false,
  // Each instance has weights of its own, and PyTorch's settings are the process's.
  sharesInterpreters: false,
  // The second imports torch, if there is one; without, each load says so.
  modules: ['numpy', 'tutti_torchscript'],
  modelFile(source) {
    checkFlavour(source)
    checkFile(source)
    return MODEL_CLASS
  },
}

/**
 * Makes the `pytorch` engine, which runs TorchScript files in processes like those of Python models. The interpreter must have
 * PyTorch. Without it each load fails with an error that says what to install.
 */
export function createPytorchEngine(o: PythonEngineOptions = {}): Engine {
  return createPythonEngine(o, PROGRAM)
}

/** @throws ServeError UNSUPPORTED for the other things that Triton's backend of this name runs. */
function checkFlavour({ name, config }: Source): void {
  const field = config.platform === 'torch_aoti' ? 'platform' : 'runtime'
  if (field === 'runtime' && ['', 'libtriton_pytorch.so'].includes(config.runtime)) return
  const problem = `${field} '${config[field]}' is not supported, only TorchScript (pytorch_libtorch)`
  throw new ServeError('UNSUPPORTED', `unable to load model '${name}', ${problem}`, {
    code: 'INVALID_ARGUMENT',
    details: { field },
  })
}

/** @throws ServeError MODEL_LOAD_FAILED if the file is absent or outside of the version directory. */
function checkFile(source: Source): void {
  const { name, config } = source
  const path = modelPath(source, DEFAULT_FILENAME)
  const others = Object.values(config.cc_model_filenames).map((other) =>
    pathInVersion(source, 'cc_model_filenames', other),
  )
  for (const file of [path, ...others]) refuseGitLfsPointer(file)
  // Which of several files for GPUs it is, only the process knows.
  if (existsSync(path) || others.length > 0) return
  throw new ServeError('MODEL_LOAD_FAILED', `unable to find '${path}' for model '${name}'`, {
    details: { field: 'default_model_filename' },
  })
}
