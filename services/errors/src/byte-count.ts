/** Counts bytes that are held for a request, under the bounds of its server. */
export interface ByteCount {
  /**
   * Counts bytes that are held from now on. A negative number gives bytes back.
   *
   * @throws ServeError OVERLOADED without counting them.
   */
  charge(bytes: number): void
}
