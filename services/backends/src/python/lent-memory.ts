import type { MemoryPart, TensorMemory } from '@tutti/tensor'
import { Arena, SPAN_BYTES } from './arena.ts'
import { openSharedMemory, type SharedMemoryLike } from './shared-memory.ts'

/** Bytes that are kept while they are not in use, for the requests to come. */
const KEPT_BYTES = 64 * 1024 * 1024
/** Bytes that are kept when nothing was in use for a while. */
const IDLE_BYTES = 1024 * 1024
/** Factor of the memory over what may be in use: more may be claimed than comes, which leaves gaps. Places without bytes take no memory. */
const SPARE = 4

/**
 * An arena of the server's own: engines' processes map it as they map those of other instances, and read in place what clients send.
 */
export class LentMemory implements TensorMemory {
  readonly #arena: Arena

  /** @param maxBytes - that may be in use. */
  constructor(memory: SharedMemoryLike, maxBytes: number) {
    this.#arena = new Arena(memory.create(Math.min(SPAN_BYTES, SPARE * maxBytes)))
  }

  /** @returns undefined where memory cannot be shared. */
  static open(maxBytes: number): LentMemory | undefined {
    const memory = openSharedMemory()
    try {
      return typeof memory === 'string' ? undefined : new LentMemory(memory, maxBytes)
    } catch {
      // The engine says so of its instances.
      return undefined
    }
  }

  take(sizeBytes: number): MemoryPart | undefined {
    const arena = this.#arena
    const part = arena.allocate(sizeBytes)
    if (part === undefined) return undefined
    const loan = arena.lend(() => {
      if (part.offset + part.size > KEPT_BYTES) {
        // Memory that bursts alone need goes back at once.
        void arena.discard(part, IDLE_BYTES)
        return
      }
      arena.free(part)
      arena.trimLater(IDLE_BYTES)
    })
    return { bytes: arena.view(part.offset, sizeBytes), free: () => loan.end() }
  }

  /** Ends it once all is given back. */
  close(): Promise<void> {
    return this.#arena.unmap()
  }
}
