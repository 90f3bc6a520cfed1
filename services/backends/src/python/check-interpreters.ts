import { findEngine, type PythonModule } from '@tutti/engines'
import type { EngineCheck, EngineCheckOptions } from '../engine-code.ts'
import { isBasePython, PYTHON_MENDING } from './find-python.ts'
import { type ProbedPython, probePython } from './probe-python.ts'

const NAMES: Readonly<Record<PythonModule, string>> = { numpy: 'NumPy', torch: 'PyTorch' }

/** Checks that at least one of the interpreters has the modules of an engine. */
export async function checkInterpreters(
  backend: string,
  { interpreters, makesEnvironment }: EngineCheckOptions,
): Promise<EngineCheck> {
  const { modules = [] } = findEngine(backend) ?? {}
  const failed: ProbedPython[] = []
  for (const candidate of new Set(interpreters)) {
    const probed = await probePython(candidate, modules)
    if (probed.problem === undefined) return { status: 'ok', found: describe(probed) }
    failed.push(probed)
  }
  const found = failed.map(({ interpreter, problem }) => `'${interpreter}': ${problem}`).join('; ')
  if (makesEnvironment && failed.some(isBasePython)) {
    const mending = 'nothing: --python auto makes an environment when the first model needs it'
    return { status: 'note', found, mending }
  }
  const other = PYTHON_MENDING[modules.at(-1) ?? 'numpy']
  const mending = makesEnvironment
    ? other
    : `serve with --python auto, which finds or makes one, or ${other}`
  return { status: 'absent', found, mending }
}

function describe({ interpreter, version, executable, modules }: ProbedPython): string {
  const parts = (['numpy', 'torch'] as const).flatMap((name) => {
    const about = modules[name]
    return about === undefined ? [] : [`${NAMES[name]} ${about.version}`]
  })
  return [`'${interpreter}' is Python ${version} (${executable})`, ...parts].join(', ')
}
