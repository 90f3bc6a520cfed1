/** A part of memory that is used again. */
export interface MemoryPart {
  /** Bytes of the part. Their content is undefined until they are written. */
  readonly bytes: Uint8Array
  /** Gives the memory back. Called once. */
  free(): void
}

/**
 * Memory for tensors that come from outside of the process, where engines in other processes can read them in place. An engine
 * that supports such memory implements this interface. A server puts tensors there and lends them.
 */
export interface TensorMemory {
  /**
   * Takes memory for one tensor.
   *
   * @returns memory of that size, on a page of its own; undefined if none is left, and then ordinary memory serves.
   */
  take(sizeBytes: number): MemoryPart | undefined
}
