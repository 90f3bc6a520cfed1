import { randomInt } from 'node:crypto'

/**
 * Below the range from which systems take ports of outgoing connections: a client that tries to reconnect while a server is
 * down can then neither take the port nor connect to itself on it.
 */
const FIRST_PORT = 12_000
const PAST_LAST_PORT = 30_000
const ATTEMPTS = 20

/** Calls `start` with ports until it finds one that is free. @throws what `start` throws else. */
export async function onFreePort<T>(start: (port: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(randomInt(FIRST_PORT, PAST_LAST_PORT))
    } catch (error) {
      const isTaken = error instanceof Error && error.message.includes('address already in use')
      if (!isTaken || attempt === ATTEMPTS) throw error
    }
  }
}
