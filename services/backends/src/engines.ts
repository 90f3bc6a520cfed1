import type { Clock, Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Engine } from './engine.ts'
import type { HostPolicies } from './host-policies.ts'
import type { ModelMetrics } from './model-metrics.ts'
import { createOnnxEngine, type OnnxEngineOptions } from './onnxruntime/onnx-engine.ts'
import { findPythonBackend, pythonBackendProgram } from './python/python-backends.ts'
import { createPythonEngine, type PythonEngineOptions } from './python/python-engine.ts'
import { ZygotePool } from './python/zygote-pool.ts'
import { createPytorchEngine } from './pytorch/pytorch-engine.ts'

/** The engines that there are, by Triton's backend name. */
export type Engines = Pick<ReadonlyMap<string, Engine>, 'get' | 'keys'>

/** Options of engines whose instances are processes. */
export type ProcessOptions = Pick<
  PythonEngineOptions,
  'interpreter' | 'settings' | 'environmentCache'
>

export interface EnginesOptions {
  /** Default: no log. */
  readonly log?: Logger
  readonly clock?: Clock
  /** Where metrics of models go. Default: nowhere. */
  readonly metrics?: ModelMetrics
  readonly python?: ProcessOptions
  /** Folder of python-based backends, `NAME/model.py`, which need not exist. Default: only those of this package. */
  readonly backendDirectory?: string | undefined
  /** CPUs of the processes of instances. Default: those of this process. */
  readonly hostPolicies?: HostPolicies
  /** Default interpreter: that of Python models. */
  readonly pytorch?: ProcessOptions
  readonly onnxruntime?: Pick<OnnxEngineOptions, 'maxStrings'>
}

/** Makes every engine that this build has, and those of python-based backends when a model asks for them. */
export function createEngines(o: EnginesOptions = {}): Engines {
  const { python, pytorch, onnxruntime, metrics, backendDirectory, ...common } = o
  const processes = { ...common, ...(metrics && { metrics }), zygotes: new ZygotePool() }
  const interpreter = pytorch?.interpreter ?? python?.interpreter
  const engines = [
    createOnnxEngine({ ...common, ...onnxruntime }),
    createPythonEngine({ ...processes, ...python }),
    createPytorchEngine({
      ...processes,
      ...pytorch,
      ...(interpreter !== undefined && { interpreter }),
    }),
  ]
  const builtIn = new Map(engines.map((engine) => [engine.backend, engine]))
  /** By folder. A backend that comes into the directory later is found by the next load. */
  const pythonBased = new Map<string, Engine>()
  const findPythonBased = (backend: string): Engine | undefined => {
    const folder = findPythonBackend(backend, backendDirectory)
    if (folder === undefined) return undefined
    const known = pythonBased.get(folder)
    if (known !== undefined) return known
    const program = pythonBackendProgram(backend, folder)
    const engine = createPythonEngine({ ...processes, ...python }, program)
    pythonBased.set(folder, engine)
    return engine
  }
  return {
    get: (backend) => builtIn.get(backend) ?? findPythonBased(backend),
    keys: () => builtIn.keys(),
  }
}

/**
 * The engine of a model's `backend`.
 *
 * @param model - its name, for the message.
 * @throws ServeError BACKEND_UNSUPPORTED naming what exists.
 */
export function selectEngine(engines: Engines, backend: string, model: string): Engine {
  const engine = engines.get(backend)
  if (engine !== undefined) return engine
  const offered = [...engines.keys()].map((name) => `'${name}'`).join(', ')
  const text = `unable to find backend library for backend '${backend}', try specifying runtime on the model configuration. Backends here: ${offered}, and those with a model.py in the backend directory; none that are native libraries`
  throw new ServeError('BACKEND_UNSUPPORTED', text, { details: { model, field: 'backend' } })
}
