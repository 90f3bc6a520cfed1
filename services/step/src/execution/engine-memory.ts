import { totalmem } from 'node:os'
import { ServeError } from '@tutti/errors'
import { elementCount, type NamedTensor } from '@tutti/tensor'

/** Executions with fewer bytes are not looked at: what an engine takes for them is no danger. */
const LARGE_BYTES = 16 * 2 ** 20
/**
 * Factor from the bytes of the inputs to the memory that an execution takes beside them, for outputs and temporary tensors: the
 * shipped models take up to 3.
 */
const TIMES = 3
/** Least bytes of an element: engines compute with floats. */
const ITEM_BYTES = 4
/** Bytes of the object that an engine makes of each text, however short. */
const TEXT_BYTES = 28

/** Memory that the engines of a process take for large executions. The system ends a process that takes more than there is. */
export class EngineMemory {
  readonly #freeBytes: () => number
  /** Bytes that running executions may still take. */
  #reserved = 0

  /** @param freeBytes - tells the bytes that the process may take beside what it has. */
  constructor(freeBytes = readSpareBytes) {
    this.#freeBytes = freeBytes
  }

  /**
   * Reserves the memory that an execution may take. The true need is known only at its end.
   *
   * @returns a function that gives it back; undefined for an execution that is not large.
   * @throws ServeError OVERLOADED if there is less.
   */
  reserve(inputs: Iterable<NamedTensor>): (() => void) | undefined {
    let bytes = 0
    for (const tensor of inputs) bytes += bytesOf(tensor)
    if (bytes < LARGE_BYTES) return undefined
    const free = Math.max(0, this.#freeBytes() - this.#reserved)
    const needed = TIMES * bytes
    if (needed > free) {
      throw new ServeError(
        'OVERLOADED',
        `server is overloaded: an execution with inputs of ${bytes} bytes, as floats, may take ${needed} more, and the process may take ${free} more`,
      )
    }
    this.#reserved += needed
    return () => void (this.#reserved -= needed)
  }
}

/** Engine memory of this process. */
export const ENGINE_MEMORY = new EngineMemory()

function bytesOf({ datatype, shape, data }: NamedTensor): number {
  const count = elementCount(shape)
  if (datatype === 'BYTES') return data.byteLength + TEXT_BYTES * count
  return Math.max(data.byteLength, ITEM_BYTES * count)
}

/**
 * Share of the machine's or control group's memory at which large executions stop. The rest is for requests that come meanwhile.
 */
const SHARE = 3 / 4
/** Share of the rest that engines may always take: models alone may fill more than `SHARE`. */
const SHARE_OF_REST = 1 / 4

/**
 * Computes the bytes that engines may take beside those of the process. @param most - bytes that it may have. @param used - bytes
 * that it has.
 */
export function spareBytes(most: number, used: number): number {
  const rest = Math.max(0, most - used)
  return Math.floor(Math.max(SHARE * most - used, SHARE_OF_REST * rest))
}

/** Reads the bytes that engines of this process may take now. */
export function readSpareBytes(): number {
  const limit = process.constrainedMemory()
  const most = limit > 0 ? Math.min(limit, totalmem()) : totalmem()
  return spareBytes(most, process.memoryUsage.rss())
}
