import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

const ATTEMPTS = 20

/**
 * Below the range from which systems take ports of outgoing connections: a client that tries to reconnect while a server is down
 * can then neither take its port nor connect to itself on it.
 */
function randomPort(): number {
  return randomInt(12_000, 30_000)
}

/** Finds a loopback port where no server listens, for programs that cannot take port 0. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomPort()
    const listener = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      listener.once('error', () => resolve(false))
      listener.listen(port, '127.0.0.1', () => resolve(true))
    })
    if (!isFree) continue
    await new Promise((resolve) => listener.close(resolve))
    return port
  }
}

/** Calls `start` with random ports until one is free. @throws the error of `start` if it is not about a taken port. */
export async function onFreePort<T>(start: (port: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(randomPort())
    } catch (error) {
      const isTaken = error instanceof Error && error.message.includes('address already in use')
      if (!isTaken || attempt === ATTEMPTS) throw error
    }
  }
}
