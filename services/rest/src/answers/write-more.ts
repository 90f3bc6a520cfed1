import type { Clock } from '@tutti/chassis'
import type { Exchange } from '@tutti/http'

export interface WriteMoreOptions {
  readonly clock: Clock
  /** Time that a client has to take each part. One that does not read would hold its request and the model. */
  readonly timeoutMs: number
}

/** Writes parts of an answer as they come, each once the one before was taken, and ends the answer. Never rejects. */
export async function writeMore(
  exchange: Exchange,
  more: AsyncGenerator<readonly Uint8Array[]>,
  { clock, timeoutMs }: WriteMoreOptions,
): Promise<void> {
  const gone = new Promise<void>((resolve) => exchange.whenOver(() => resolve()))
  for await (const parts of more) {
    if (exchange.isOver) break
    const stopTimer = clock.setTimer(timeoutMs, () => exchange.destroy())
    await Promise.race([exchange.write(parts), gone])
    stopTimer()
  }
  exchange.end()
}
