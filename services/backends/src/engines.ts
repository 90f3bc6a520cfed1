import { ServeError } from '@tutti/errors'
import type { Engine } from './engine.ts'
import { createOnnxEngine, type OnnxEngineOptions } from './onnxruntime/onnx-engine.ts'

/** The engines that this build has, by Triton's backend name. */
export type Engines = ReadonlyMap<string, Engine>

/** Makes every engine that this build has. */
export function createEngines(options: OnnxEngineOptions = {}): Engines {
  const engines = [createOnnxEngine(options)]
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
  throw new ServeError(
    'BACKEND_UNSUPPORTED',
    `unable to load model '${model}': backend '${backend}' is not offered here, want one of ${offered}`,
    { details: { model, field: 'backend' } },
  )
}
