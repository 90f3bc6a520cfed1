/** A part of memory that is used again. */
export interface MemoryPart {
  /** Any bytes, until they are written. */
  readonly bytes: Uint8Array
  /** Gives it back, once. */
  free(): void
}

/**
 * Memory for tensors that come from outside of the process, where engines in other processes can read them in place. An engine
 * that knows it implements it; what brings tensors (a server) puts them there and lends them.
 */
export interface TensorMemory {
  /** @returns memory of that size, on a page of its own; undefined if there is none left: ordinary memory serves then. */
  take(sizeBytes: number): MemoryPart | undefined
}
