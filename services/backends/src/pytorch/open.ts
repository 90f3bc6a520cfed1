import type { EngineCheck, EngineCheckOptions, EngineOpenOptions } from '../engine-code.ts'
import { checkInterpreters } from '../python/check-interpreters.ts'
import { zygotesOf } from '../python/zygote-pool.ts'
import { createPytorchEngine } from './pytorch-engine.ts'

/** Opens the engine, as `open` of EngineCode. */
export function open(o: EngineOpenOptions) {
  return createPytorchEngine({ ...o, zygotes: zygotesOf(o.owner) })
}

/** Checks the engine, as `check` of EngineCode. */
export function check(o: EngineCheckOptions): Promise<EngineCheck> {
  return checkInterpreters('pytorch', o)
}
