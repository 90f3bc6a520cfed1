/** Counts bytes that are held for a request, under the bounds of its server. */
export interface ByteCount {
  /** Counts bytes, or gives back with a negative number. @throws ServeError OVERLOADED without counting them. */
  charge(bytes: number): void
}
