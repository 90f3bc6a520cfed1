import { join, resolve } from 'node:path'
import {
  type EngineSettings,
  type FindPythonOptions,
  findPython,
  probePython,
  pythonsOnPath,
} from '@tutti/backends'
import {
  type Clock,
  type FlagTable,
  type FlagValues,
  flagRefusal,
  type Logger,
  type StatusLine,
} from '@tutti/chassis'
import { ENGINES_IN_PYTHON, type EngineDescriptor, modelsOf, PYTHON_ENGINE } from '@tutti/engines'
import { type BackendConfig, readBackendConfig } from '@tutti/step'

/** Flag for the Python interpreter that runs models. */
export const PYTHON_FLAGS = {
  python: {
    type: 'string',
    path: 'file',
    description: `Interpreter of ${modelsOf(({ modules }) => modules !== undefined)}: a path, a program on PATH, or auto, which takes the first Python on PATH that can run them and else makes an environment with NumPy, or PyTorch for the CPU, in tutti/environments in XDG_CACHE_HOME or ~/.cache. Default: python3.`,
  },
} as const satisfies FlagTable

type PythonFlags = FlagValues<typeof PYTHON_FLAGS> & {
  readonly 'backend-config': readonly string[]
}

export interface ChoosePythonOptions {
  /** Tutti's folder in the user's cache. */
  readonly cache: string
  /** Value of PATH, where `auto` looks. */
  readonly path: string | undefined
  readonly log: Logger
  readonly statusLine?: StatusLine | undefined
  readonly clock: Clock
  /** Signal that aborts the making of an environment. */
  readonly signal: AbortSignal
}

/** Value of `--python` that makes Tutti look for an interpreter. */
export const AUTO_PYTHON = 'auto'
const DEFAULT_PYTHON = 'python3'

/** Checks `--python`. @throws ServeError FLAG_INVALID for an empty value, or if two flags name an interpreter. */
export function checkPythonFlags(flags: PythonFlags): void {
  const { python } = flags
  const given = interpreterOf(flags, PYTHON_ENGINE.backend)
  if (python === '') throw flagRefusal('--python', 'got an empty text, want auto or a path')
  if (python === undefined || python === AUTO_PYTHON || given === undefined) return
  const problem = `got "${python}" with --backend-config=python,interpreter=${given}, want one of them`
  throw flagRefusal('--python', problem)
}

/**
 * Builds the settings of backends with the interpreter of `--python`. With `auto`, the first model that needs an interpreter
 * starts the search, which may make an environment. A failed search is the model's error, and the next load searches again.
 *
 * @throws ServeError FLAG_INVALID if the named interpreter cannot run Python models.
 */
export async function choosePython(
  flags: PythonFlags,
  o: ChoosePythonOptions,
): Promise<BackendConfig> {
  const environmentCache = join(o.cache, 'environments')
  const given = readBackendConfig(flags['backend-config'])
  const withPython = (change: (engine: EngineDescriptor) => Partial<EngineSettings>) => {
    const settings = new Map(given.settings)
    for (const engine of ENGINES_IN_PYTHON) {
      const before = settings.get(engine.backend) ?? { settings: {} }
      settings.set(engine.backend, { ...before, environmentCache, ...change(engine) })
    }
    return { ...given, settings }
  }
  if (flags.python === undefined) return withPython(() => ({}))
  if (flags.python !== AUTO_PYTHON) {
    const interpreter = asProgram(flags.python)
    const { problem } = await probePython(interpreter, ['numpy'], o.signal)
    if (problem !== undefined) {
      const want = 'want Python 3.9 or newer with NumPy, or auto'
      throw flagRefusal('--python', `'${interpreter}' cannot run models: ${problem}; ${want}`)
    }
    return withPython(({ backend }) => ({ interpreter, ...given.settings.get(backend) }))
  }
  return withPython(({ backend, modules = [] }) => {
    const candidates = pythonCandidates(flags, backend, o.path)
    const finding = { ...o, ...candidates, cache: environmentCache, modules }
    return { interpreter: sharedWhilePending(finding) }
  })
}

type PythonCandidates = Required<Pick<FindPythonOptions, 'named' | 'candidates'>>

/**
 * Lists the interpreters for an engine, of which the first that can run the engine's models is taken. Without `auto`, it lists
 * one.
 *
 * @param path - value of PATH, where `auto` looks after the interpreters of flags.
 * @returns `named`: interpreters of flags; `candidates`: those that are tried after them.
 */
export function pythonCandidates(flags: PythonFlags, backend: string, path = ''): PythonCandidates {
  const isAuto = flags.python === AUTO_PYTHON
  const given = isAuto || flags.python === undefined ? undefined : asProgram(flags.python)
  const own = backend === PYTHON_ENGINE.backend ? undefined : interpreterOf(flags, backend)
  const named = [own, given, interpreterOf(flags, PYTHON_ENGINE.backend)].filter(
    (name) => name !== undefined,
  )
  const onPath = isAuto ? pythonsOnPath(path) : []
  // Without any the error says that the default does not run.
  const candidates = onPath.length === 0 ? [DEFAULT_PYTHON] : onPath
  if (isAuto) return { named, candidates }
  return { named: named.slice(0, 1), candidates: named.length === 0 ? [DEFAULT_PYTHON] : [] }
}

/** Returns the interpreter that `--backend-config` names for an engine. */
function interpreterOf(flags: PythonFlags, backend: string): string | undefined {
  const given = readBackendConfig(flags['backend-config']).settings.get(backend)?.interpreter
  return typeof given === 'string' ? given : undefined
}

/** Resolves an interpreter: a path from the working folder; a name is looked up in PATH. */
function asProgram(python: string): string {
  return python.includes('/') ? resolve(python) : python
}

/** Shares a search among models that load at the same time. A found interpreter stays, a failed search is made again. */
function sharedWhilePending(o: FindPythonOptions): () => Promise<string> {
  let found: Promise<string> | undefined
  return () => {
    found ??= findPython(o).catch((error: unknown) => {
      found = undefined
      throw error
    })
    return found
  }
}
