import type { Clock, Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Engine } from './engine.ts'
import type { ModelMetrics } from './model-metrics.ts'
import { createOnnxEngine } from './onnxruntime/onnx-engine.ts'
import { createPythonEngine, type PythonEngineOptions } from './python/python-engine.ts'
import { createPytorchEngine } from './pytorch/pytorch-engine.ts'

/** The engines that this build has, by Triton's backend name. */
export type Engines = ReadonlyMap<string, Engine>

export interface EnginesOptions {
  /** Default: no log. */
  readonly log?: Logger
  readonly clock?: Clock
  /** Where metrics of models go. Default: nowhere. */
  readonly metrics?: ModelMetrics
  readonly python?: Pick<PythonEngineOptions, 'interpreter' | 'settings'>
  /** Default interpreter: that of Python models. */
  readonly pytorch?: Pick<PythonEngineOptions, 'interpreter' | 'settings'>
}

/** Makes every engine that this build has. */
export function createEngines(o: EnginesOptions = {}): Engines {
  const { python, pytorch, metrics, ...common } = o
  const processes = { ...common, ...(metrics && { metrics }) }
  const interpreter = pytorch?.interpreter ?? python?.interpreter
  const engines = [
    createOnnxEngine(common),
    createPythonEngine({ ...processes, ...python }),
    createPytorchEngine({
      ...processes,
      ...pytorch,
      ...(interpreter !== undefined && { interpreter }),
    }),
  ]
  return new Map(engines.map((engine) => [engine.backend, engine]))
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
  const text = `unable to load model '${model}': backend '${backend}' is not offered here, want one of ${offered}`
  throw new ServeError('BACKEND_UNSUPPORTED', text, { details: { model, field: 'backend' } })
}
