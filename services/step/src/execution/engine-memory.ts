import { totalmem } from 'node:os'
import { ServeError } from '@tutti/errors'
import { elementCount, type NamedTensor } from '@tutti/tensor'

/** Executions with fewer bytes are not looked at: what an engine takes for them is no danger. */
const LARGE_BYTES = 16 * 2 ** 20
/** What an execution may take beside its inputs, times their bytes: outputs, and what the engine needs meanwhile, of which the shipped models take up to 3. */
const TIMES = 3
/** Of an element at least: engines compute with floats. */
const ITEM_BYTES = 4
/** An engine makes an object of each text, however short. */
const TEXT_BYTES = 28

/** The memory of a process that engines take for large executions, which the system would end if it were more than there is. */
export class EngineMemory {
  readonly #freeBytes: () => number
  /** What executions that go on may still take. */
  #promised = 0

  /** @param freeBytes - that the process may take beside what it has. */
  constructor(freeBytes = freeMemory) {
    this.#freeBytes = freeBytes
  }

  /**
   * Takes what an execution may need; what it really needs is known only once it has ended.
   *
   * @returns gives it back; undefined for one that is not large.
   * @throws ServeError OVERLOADED if there is not as much.
   */
  take(inputs: Iterable<NamedTensor>): (() => void) | undefined {
    let bytes = 0
    for (const tensor of inputs) bytes += bytesOf(tensor)
    if (bytes < LARGE_BYTES) return undefined
    const free = Math.max(0, this.#freeBytes() - this.#promised)
    const needed = TIMES * bytes
    if (needed > free) {
      throw new ServeError(
        'OVERLOADED',
        `server is overloaded: an execution with inputs of ${bytes} bytes, as floats, may take ${needed} more, and the process may take ${free} more`,
      )
    }
    this.#promised += needed
    return () => void (this.#promised -= needed)
  }
}

/** That of this process. */
export const ENGINE_MEMORY = new EngineMemory()

function bytesOf({ datatype, shape, data }: NamedTensor): number {
  const count = elementCount(shape)
  if (datatype === 'BYTES') return data.byteLength + TEXT_BYTES * count
  return Math.max(data.byteLength, ITEM_BYTES * count)
}

/** Engines may take so much of the machine, or of the control group, with all else that is there. The rest is for requests that come meanwhile. */
const SHARE = 3 / 4
/** And always so much of what is left: a process may take more than that share for its models alone. */
const SHARE_OF_REST = 1 / 4

/** What engines may take beside what the process has. @param most - bytes that it may have. @param used - bytes that it has. */
export function spareBytes(most: number, used: number): number {
  const rest = Math.max(0, most - used)
  return Math.floor(Math.max(SHARE * most - used, SHARE_OF_REST * rest))
}

/** Bytes that engines of this process may take. */
export function freeMemory(): number {
  const limit = process.constrainedMemory()
  const most = limit > 0 ? Math.min(limit, totalmem()) : totalmem()
  return spareBytes(most, process.memoryUsage.rss())
}
