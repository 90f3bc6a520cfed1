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
 * Arena of the server itself. Engines' processes map it as they map arenas of other instances, and read clients' tensors in
 * place.
 */
export class LentMemory implements TensorMemory {
  readonly #arena: Arena

  /** Allocates the arena. @param maxBytes - most bytes that are in use at a time. */
  constructor(memory: SharedMemoryLike, maxBytes: number) {
    this.#arena = new Arena(memory.create(Math.min(SPAN_BYTES, SPARE * maxBytes)))
  }

  /** Opens the memory on this machine. The caller closes it. @returns undefined where memory cannot be shared. */
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

  /** Unmaps the memory once all parts are given back. */
  close(): Promise<void> {
    return this.#arena.unmap()
  }
}
