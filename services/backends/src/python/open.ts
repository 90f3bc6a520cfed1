import type { EngineCheck, EngineCheckOptions, EngineOpenOptions } from '../engine-code.ts'
import { checkInterpreters } from './check-interpreters.ts'
import { createPythonEngine } from './python-engine.ts'

/** As EngineCode's. */
export function open(o: EngineOpenOptions) {
  return createPythonEngine(o)
}

/** As EngineCode's. */
export function check(o: EngineCheckOptions): Promise<EngineCheck> {
  return checkInterpreters('python', o)
}
