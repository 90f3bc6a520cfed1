import { totalmem } from 'node:os'
import { ServeError } from '@tutti/errors'
import type { NamedTensor } from '@tutti/tensor'

/** Steps with fewer bytes are not looked at: what an engine takes for them is no danger. */
const LARGE_BYTES = 16 * 2 ** 20
/** What a step may take beside its inputs, times their bytes: outputs, and what the engine needs meanwhile. The shipped face ensemble takes 4. */
const TIMES = 4

/**
 * Refuses a step for which an engine of this process would hardly find the memory: the system would end the process with all its
 * requests. What a step really takes is known only once it has ended.
 *
 * @throws ServeError OVERLOADED
 */
export function checkEngineMemory(inputs: readonly NamedTensor[], freeBytes = freeMemory): void {
  const bytes = inputs.reduce((sum, { data }) => sum + data.byteLength, 0)
  if (bytes < LARGE_BYTES) return
  const free = freeBytes()
  if (TIMES * bytes <= free) return
  throw new ServeError(
    'OVERLOADED',
    `server is overloaded: a step with inputs of ${bytes} bytes may take ${TIMES * bytes} more, and the process may take ${free} more`,
  )
}

/** What this process may take beside what it has: of the machine, or of its control group. */
function freeMemory(): number {
  const limit = process.constrainedMemory()
  const most = limit > 0 ? Math.min(limit, totalmem()) : totalmem()
  return Math.max(0, most - process.memoryUsage.rss())
}
