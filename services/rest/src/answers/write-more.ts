import type { ServerResponse } from 'node:http'
import type { Clock } from '@tutti/chassis'

export interface WriteMoreOptions {
  readonly clock: Clock
  /** Time that a client has to take each part. One that does not read would hold its request and the model. */
  readonly timeoutMs: number
}

/** Writes parts of an answer as they come, each once the one before was taken, and ends the answer. Never rejects. */
export async function writeMore(
  response: ServerResponse,
  more: AsyncGenerator<readonly Uint8Array[]>,
  { clock, timeoutMs }: WriteMoreOptions,
): Promise<void> {
  const gone = new Promise<void>((resolve) => void response.once('close', resolve))
  for await (const parts of more) {
    if (response.destroyed) break
    const stopTimer = clock.setTimer(timeoutMs, () => response.destroy())
    response.cork()
    const taken = parts.map((part) => {
      return new Promise<void>((resolve) => void response.write(part, () => resolve()))
    })
    response.uncork()
    await Promise.race([Promise.all(taken), gone])
    stopTimer()
  }
  response.end()
}
