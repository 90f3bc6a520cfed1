import type { EngineCheck, EngineCheckOptions, EngineOpenOptions } from '../engine-code.ts'
import { checkInterpreters } from '../python/check-interpreters.ts'
import { zygotesOf } from '../python/zygote-pool.ts'
import { createPytorchEngine } from './pytorch-engine.ts'

/** As EngineCode's. */
export function open(o: EngineOpenOptions) {
  return createPytorchEngine({ ...o, zygotes: zygotesOf(o.owner) })
}

/** As EngineCode's. */
export function check(o: EngineCheckOptions): Promise<EngineCheck> {
  return checkInterpreters('pytorch', o)
}
