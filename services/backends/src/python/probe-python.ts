import { fileURLToPath } from 'node:url'
import type { PythonModule } from '@tutti/engines'
import { ProgramStopped, runChildProgram, whatFailed } from './run-program.ts'

/** Result of probing a Python interpreter. */
export interface ProbedPython {
  /** Interpreter as it was asked for: a name on PATH, or a path. */
  readonly interpreter: string
  /** Version, such as `3.11.7`; undefined if the interpreter did not answer. */
  readonly version?: string
  /** Path that the interpreter reports for itself. */
  readonly executable?: string
  readonly modules: Readonly<Partial<Record<PythonModule, ModuleReport>>>
  /** Reason why the interpreter cannot run models that need the modules; undefined if it can. */
  readonly problem?: string
  /** True if the interpreter was stopped before it answered, so that the fault may not be its own. */
  readonly isUnanswered?: true
}

interface ModuleReport {
  readonly version?: string
  readonly problem?: string
}

type Report = Required<Pick<ProbedPython, 'version' | 'executable' | 'modules'>>

const PROGRAM = fileURLToPath(new URL('../../python/tutti_probe.py', import.meta.url))
/** Most time of a probe: the first import of PyTorch from a slow disk is slow. */
const PROBE_MS = 120_000
const OLDEST_PYTHON = [3, 9] as const
const OLDEST_TORCH = [1, 12] as const

/** Asks an interpreter for its version, and makes it import the modules. Never rejects: an error becomes `problem`. */
export async function probePython(
  interpreter: string,
  modules: readonly PythonModule[],
  signal?: AbortSignal,
): Promise<ProbedPython> {
  let report: Report
  try {
    const args = ['-B', PROGRAM, ...modules]
    // Processes of models start there, too.
    const options = { cwd: '/', timeoutMs: PROBE_MS, signal }
    const stdout = await runChildProgram(interpreter, args, options)
    report = parseReport(stdout.trimEnd().split('\n').at(-1) ?? '')
  } catch (error) {
    const problem = `it does not run (${whatFailed(error)})`
    const isUnanswered = error instanceof ProgramStopped
    return { interpreter, modules: {}, problem, ...(isUnanswered && { isUnanswered }) }
  }
  const problem = findProblem(report, modules)
  return { interpreter, ...report, ...(problem !== undefined && { problem }) }
}

/** @throws Error for what our program does not print, as where another one has the name of an interpreter. */
function parseReport(line: string): Report {
  const { version, executable, modules } = Object(JSON.parse(line))
  if (
    typeof version === 'string' &&
    typeof executable === 'string' &&
    Object(modules) === modules
  ) {
    return { version, executable, modules }
  }
  throw new Error('it is no Python')
}

function findProblem(report: Report, modules: readonly PythonModule[]): string | undefined {
  if (!isNewEnough(report.version)) {
    return `Python ${report.version} is too old, want ${OLDEST_PYTHON.join('.')} or newer`
  }
  for (const name of modules) {
    const { version = '', problem } = report.modules[name] ?? {}
    if (problem !== undefined) return `it cannot import ${name} (${problem})`
    if (name === 'torch' && isOlder(version, OLDEST_TORCH)) {
      return `PyTorch ${version} is too old, want ${OLDEST_TORCH.join('.')} or newer`
    }
  }
  return undefined
}

/** Checks whether a version of Python is 3.9 or newer. */
export function isNewEnough(version: string): boolean {
  return !isOlder(version, OLDEST_PYTHON)
}

function isOlder(version: string, [wantMajor, wantMinor]: readonly [number, number]): boolean {
  const [major = 0, minor = 0] = version.split('.').map((part) => Number.parseInt(part, 10))
  return major < wantMajor || (major === wantMajor && minor < wantMinor)
}
