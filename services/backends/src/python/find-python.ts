import { createHash } from 'node:crypto'
import { readFile, readlink, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Clock, type Logger, type StatusLine, showElapsed } from '@tutti/chassis'
import type { PythonModule } from '@tutti/engines'
import { ServeError } from '@tutti/errors'
import { makeCached } from './cached-folder.ts'
import { isNewEnough, type ProbedPython, probePython } from './probe-python.ts'
import { type RunProgramOptions, runChildProgram, whatFailed } from './run-program.ts'

export interface FindPythonOptions {
  /** Interpreters that flags name, tried before the candidates. The log says why one of them is not taken. */
  readonly named?: readonly string[]
  /** Names on PATH, or paths. The first one that has the modules is taken. */
  readonly candidates: readonly string[]
  readonly modules: readonly PythonModule[]
  /** Folder of environments. An environment is made there if no candidate has the modules. */
  readonly cache: string
  readonly log: Logger
  /** Status line that shows how long an environment takes; if absent, log lines do. */
  readonly statusLine?: StatusLine | undefined
  readonly clock: Clock
  /** Signal that ends the search or the installation. */
  readonly signal?: AbortSignal
}

const REQUIREMENTS = new URL('../../python/environment/', import.meta.url)
const INSTALL_MS = 1_800_000
/** The last lines that pip wrote are its errors; those above are its attempts. */
const PIP_LINES = 2
/** Advice where no interpreter has the modules, by the last one. */
export const PYTHON_MENDING: Readonly<Record<PythonModule, string>> = {
  numpy:
    'install Python 3.9 or newer with NumPy (Debian: apt-get install python3-numpy), or name one that has it by --python PATH',
  torch:
    'install PyTorch for the CPU (Debian: apt-get install python3-torch python3-numpy), or name an interpreter that has it by --python PATH',
}

/**
 * Finds an interpreter that can run models, or makes an environment with the modules.
 *
 * @returns a name on PATH, or a path.
 * @throws ServeError MODEL_LOAD_FAILED that says what to install.
 */
export async function findPython(o: FindPythonOptions): Promise<string> {
  const { interpreter, executable = interpreter } = await findOrMake(o)
  const path = interpreter.includes('/') ? interpreter : executable
  o.log.info('Python chosen', { interpreter: path, modules: o.modules })
  return interpreter
}

type ChosenPython = Pick<ProbedPython, 'interpreter' | 'executable'>

async function findOrMake(o: FindPythonOptions): Promise<ChosenPython> {
  const { named = [], candidates, modules } = o
  const probed: ProbedPython[] = []
  for (const interpreter of new Set([...named, ...candidates])) {
    const found = await probePython(interpreter, modules, o.signal)
    const { problem } = found
    if (problem === undefined) return found
    if (named.includes(interpreter)) o.log.warn('Python passed over', { interpreter, problem })
    probed.push(found)
  }
  const base = probed.find(isBasePython)
  const problems = probed.map(({ interpreter, problem }) => `'${interpreter}': ${problem}`)
  const tried = `no Python here can run models (${problems.join('; ')})`
  if (base === undefined) throw refusal(tried, o)
  return { interpreter: await ensureEnvironment(base, tried, o) }
}

type BasePython = ProbedPython & Required<Pick<ProbedPython, 'version' | 'executable'>>

/** Checks whether an environment can be made with an interpreter: it may lack modules, but nothing else. */
export function isBasePython(found: ProbedPython): found is BasePython {
  const { executable, version } = found
  return executable !== undefined && version !== undefined && isNewEnough(version)
}

/**
 * Finds the environment that an earlier start made, or makes a new one if it no longer works.
 *
 * @param tried - why one is needed.
 */
async function ensureEnvironment(
  base: BasePython,
  tried: string,
  o: FindPythonOptions,
): Promise<string> {
  const module = o.modules.at(-1) ?? 'numpy'
  const requirements = fileURLToPath(new URL(`${module}.txt`, REQUIREMENTS))
  const digest = createHash('sha256')
    .update(`${base.executable} ${process.platform} ${process.arch}\n`)
    .update(await readFile(requirements))
    .digest('hex')
  const key = `python-${base.version}-${module}-${digest.slice(0, 12)}`
  const folder = join(o.cache, key)
  const interpreter = join(folder, 'bin', 'python')
  const isThere = (await readlink(folder).catch(() => undefined)) !== undefined
  if (isThere) {
    const { problem, isUnanswered } = await probePython(interpreter, o.modules, o.signal)
    if (problem === undefined) return interpreter
    if (isUnanswered) {
      const text = `cannot tell whether the Python environment in ${folder} works: ${problem}`
      throw new ServeError('MODEL_LOAD_FAILED', `${text}; load the model again, or remove it`)
    }
    o.log.warn('Python environment is made anew', { folder, problem })
    await rm(folder, { force: true })
  }
  const begin = o.clock.now()
  o.log.info('making a Python environment', { folder, modules: o.modules })
  let said = ''
  const stop = showElapsed({
    ...o,
    what: 'Making a Python environment',
    detail: () => said,
    tell: (elapsedMs) => o.log.info('making a Python environment', { folder, elapsedMs, said }),
  })
  const onLine = (line: string): void => {
    said = line
  }
  try {
    await makeCached(o.cache, key, async (directory) => {
      await install(base, { directory, requirements, onLine, signal: o.signal })
      // Settings of pip, as PIP_TARGET, may have put the packages elsewhere.
      const { problem } = await probePython(join(directory, 'bin', 'python'), o.modules, o.signal)
      if (problem !== undefined) throw new Error(problem)
    })
  } catch (error) {
    const why = whatFailed(error, PIP_LINES)
    const text = `cannot make a Python environment for models in ${folder} (${why}); ${tried}`
    throw refusal(text, o, error)
  } finally {
    stop()
  }
  o.log.info('Python environment made', { folder, durationMs: o.clock.now() - begin })
  return interpreter
}

async function install(
  { executable }: BasePython,
  {
    directory,
    requirements,
    ...o
  }: { readonly directory: string; readonly requirements: string } & Pick<
    RunProgramOptions,
    'onLine' | 'signal'
  >,
): Promise<void> {
  const options = { cwd: directory, timeoutMs: INSTALL_MS, ...o }
  await runChildProgram(executable, ['-m', 'venv', directory], options)
  const pip = [
    '-m',
    'pip',
    'install',
    '--progress-bar=off',
    '--disable-pip-version-check',
    '--no-input',
  ]
  // A machine without network shall not wait for minutes.
  const patience = ['--retries', '1', '--timeout', '20']
  const python = join(directory, 'bin', 'python')
  await runChildProgram(python, [...pip, ...patience, '--requirement', requirements], options)
}

function refusal(
  text: string,
  { modules }: Pick<FindPythonOptions, 'modules'>,
  cause?: unknown,
): ServeError {
  const mending = PYTHON_MENDING[modules.at(-1) ?? 'numpy']
  return new ServeError('MODEL_LOAD_FAILED', `${text}; ${mending}`, { cause })
}
