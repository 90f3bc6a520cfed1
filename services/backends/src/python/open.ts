import type { EngineCheck, EngineCheckOptions, EngineOpenOptions } from '../engine-code.ts'
import { checkInterpreters } from './check-interpreters.ts'
import { pythonBackendProgram } from './python-backends.ts'
import { createPythonEngine } from './python-engine.ts'
import { zygotesOf } from './zygote-pool.ts'

/** Opens the engine, as `open` of EngineCode. */
export function open(o: EngineOpenOptions) {
  return createPythonEngine({ ...o, zygotes: zygotesOf(o.owner) })
}

/** Makes the engine of a python-based backend. @param program - name of the backend, and the folder with its model.py. */
export function openBackend(
  o: EngineOpenOptions,
  program: { readonly backend: string; readonly folder: string },
) {
  const zygotes = zygotesOf(o.owner)
  return createPythonEngine({ ...o, zygotes }, pythonBackendProgram(program))
}

/** Checks the engine, as `check` of EngineCode. */
export function check(o: EngineCheckOptions): Promise<EngineCheck> {
  return checkInterpreters('python', o)
}
