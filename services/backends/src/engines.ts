import { ENGINES, findEngine, ONNX_ENGINE, PYTHON_ENGINE } from '@tutti/engines'
import { ServeError } from '@tutti/errors'
import type { Engine } from './engine.ts'
import type {
  EngineCheck,
  EngineCheckOptions,
  EngineCode,
  EngineOpenOptions,
  EngineSettings,
} from './engine-code.ts'
import { findPythonBackend } from './python/python-backends.ts'

/** The engines that there are, by Triton's backend name. */
export interface Engines {
  get(backend: string): Engine | undefined | Promise<Engine | undefined>
  /** Lists the backends that have an engine of their own. */
  keys(): Iterable<string>
  /**
   * Opens the engine of built-in steps. No file may name it, so `get` does not know it. Absent from a list of engines that a test
   * makes.
   */
  builtin?(): Promise<Engine>
}

export interface EnginesOptions
  extends Pick<EngineOpenOptions, 'log' | 'clock' | 'metrics' | 'hostPolicies'> {
  /** Settings of engines, by backend. Default: none. */
  readonly settings?: ReadonlyMap<string, EngineSettings>
  /** Folder of python-based backends, `NAME/model.py`, which need not exist. Default: only those of this package. */
  readonly backendDirectory?: string | undefined
}

const NO_SETTINGS: EngineSettings = { settings: {} }

/** Makes the engines of the list, each of which opens with its first model, and those of python-based backends. */
export function createEngines(o: EnginesOptions = {}): Engines {
  const { settings, backendDirectory, ...common } = o
  const shared = { ...common, owner: {} }
  const { interpreter } = settings?.get(PYTHON_ENGINE.backend) ?? NO_SETTINGS
  const optionsOf = (backend: string): EngineOpenOptions => ({
    ...shared,
    ...(interpreter !== undefined && { interpreter }),
    ...(settings?.get(backend) ?? NO_SETTINGS),
  })
  /** Opened engines, by backend, or by the folder of a backend in Python, because another folder may take its place. */
  const opened = new Map<string, Promise<Engine>>()
  const once = (key: string, open: () => Promise<Engine>): Promise<Engine> => {
    const known = opened.get(key)
    if (known !== undefined) return known
    const engine = open()
    opened.set(key, engine)
    // The next load tries again: what was missing may be there by then.
    engine.catch(() => opened.delete(key))
    return engine
  }
  const get: Engines['get'] = (backend) => {
    if (findEngine(backend) !== undefined) {
      return once(backend, async () => (await loadCode(backend)).open(optionsOf(backend)))
    }
    // A backend that comes into the directory later is found by the next load.
    const folder = findPythonBackend(backend, backendDirectory)
    if (folder === undefined) return undefined
    return once(folder, async () => {
      const { openBackend } = await import('./python/open.ts')
      return openBackend(optionsOf(PYTHON_ENGINE.backend), { backend, folder })
    })
  }
  return {
    get,
    // Its graphs share the runtime and its threads with ONNX models.
    builtin: () =>
      once('builtin step', async () => {
        const { createBuiltinEngine } = await import('./builtin/builtin-engine.ts')
        return createBuiltinEngine({ onnx: async () => await get(ONNX_ENGINE.backend) })
      }),
    keys: () => ENGINES.map(({ backend }) => backend).toSorted(),
  }
}

/** Checks whether this machine has what an engine of the list needs. */
export async function checkEngine(backend: string, o: EngineCheckOptions): Promise<EngineCheck> {
  return await (await loadCode(backend)).check(o)
}

/** Loads the code of an engine of the list: by its name, so that the list is the only one. */
async function loadCode(backend: string): Promise<EngineCode> {
  return await import(`./${backend}/open.ts`)
}

/**
 * Finds the engine of a model's `backend`.
 *
 * @param model - its name, for the message.
 * @throws ServeError BACKEND_UNSUPPORTED naming what exists.
 */
export async function selectEngine(
  engines: Engines,
  backend: string,
  model: string,
): Promise<Engine> {
  const engine = await engines.get(backend)
  if (engine !== undefined) return engine
  const offered = [...engines.keys()].map((name) => `'${name}'`).join(', ')
  const text = `unable to find backend library for backend '${backend}', try specifying runtime on the model configuration. Backends here: ${offered}, and those with a model.py in the backend directory; none that are native libraries`
  throw new ServeError('BACKEND_UNSUPPORTED', text, { details: { model, field: 'backend' } })
}
