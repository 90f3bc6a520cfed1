import type { EngineCheck, EngineCheckOptions, EngineOpenOptions } from '../engine-code.ts'
import { checkInterpreters } from './check-interpreters.ts'
import { pythonBackendProgram } from './python-backends.ts'
import { createPythonEngine } from './python-engine.ts'
import { zygotesOf } from './zygote-pool.ts'

/** As EngineCode's. */
export function open(o: EngineOpenOptions) {
  return createPythonEngine({ ...o, zygotes: zygotesOf(o.owner) })
}

/** Makes the engine of a backend that is Python code itself. @param program - its name, and the folder that has its model.py. */
export function openBackend(
  o: EngineOpenOptions,
  program: { readonly backend: string; readonly folder: string },
) {
  const zygotes = zygotesOf(o.owner)
  return createPythonEngine({ ...o, zygotes }, pythonBackendProgram(program))
}

/** As EngineCode's. */
export function check(o: EngineCheckOptions): Promise<EngineCheck> {
  return checkInterpreters('python', o)
}
