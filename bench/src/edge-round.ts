/** Calls of one size over one edge. */
export interface EdgeRound {
  /** Bytes each way; a multiple of 12, one row of the model's FP32 [1, n, 3]. */
  readonly bytes: number
  readonly calls: number
  readonly inFlight: number
}

export interface EdgeTimes {
  readonly wallMs: number
  /** From the call to its answer, of each. */
  readonly latenciesMs: readonly number[]
}

/** Carries bytes over the edge and brings the same bytes back. */
export type EdgeCall = (data: Uint8Array) => Promise<Uint8Array>

/**
 * Runs a round, always `inFlight` calls open.
 *
 * @throws Error if an answer is not the bytes that were sent; the first one is compared, of the others the length.
 */
export async function runEdgeRound(round: EdgeRound, call: EdgeCall): Promise<EdgeTimes> {
  const data = Uint8Array.from({ length: round.bytes }, (_, i) => (i * 2_654_435_761) >>> 24)
  const latenciesMs: number[] = []
  let begun = 0
  const caller = async (): Promise<void> => {
    while (begun < round.calls) {
      begun += 1
      const started = performance.now()
      const answer = await call(data)
      latenciesMs.push(performance.now() - started)
      if (answer.byteLength !== data.byteLength) {
        throw new Error(
          `got ${answer.byteLength} bytes, want the ${data.byteLength} that were sent`,
        )
      }
    }
  }
  if (Buffer.compare(await call(data), data) !== 0) throw new Error('other bytes came back')
  const started = performance.now()
  await Promise.all(Array.from({ length: round.inFlight }, caller))
  return { wallMs: performance.now() - started, latenciesMs }
}
