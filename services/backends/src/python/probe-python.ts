import { fileURLToPath } from 'node:url'
import type { PythonModule } from '@tutti/engines'
import { ProgramStopped, runProgram, whatFailed } from './run-program.ts'

/** The report of an interpreter on itself. */
export interface ProbedPython {
  /** As it was asked for: a name on PATH, or a path. */
  readonly interpreter: string
  /** `3.11.7`; undefined if it did not answer. */
  readonly version?: string
  /** Its own path. */
  readonly executable?: string
  readonly modules: Readonly<Partial<Record<PythonModule, ModuleReport>>>
  /** Why it cannot run the models that need these modules; undefined if it can. */
  readonly problem?: string
  /** Whether it was stopped before it answered, so that the problem may be none of its own. */
  readonly isUnanswered?: true
}

interface ModuleReport {
  readonly version?: string
  readonly problem?: string
}

type Report = Required<Pick<ProbedPython, 'version' | 'executable' | 'modules'>>

const PROGRAM = fileURLToPath(new URL('../../python/tutti_probe.py', import.meta.url))
/** The first import of PyTorch from a slow disk takes its time. */
const PROBE_MS = 120_000
const OLDEST_PYTHON = [3, 9] as const
const OLDEST_TORCH = [1, 12] as const

/** Asks an interpreter for its version, and has it import the modules. Never fails: what goes wrong is the problem. */
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
    const stdout = await runProgram(interpreter, args, options)
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

/** @param version - of Python. */
export function isNewEnough(version: string): boolean {
  return !isOlder(version, OLDEST_PYTHON)
}

function isOlder(version: string, [wantMajor, wantMinor]: readonly [number, number]): boolean {
  const [major = 0, minor = 0] = version.split('.').map((part) => Number.parseInt(part, 10))
  return major < wantMajor || (major === wantMajor && minor < wantMinor)
}
