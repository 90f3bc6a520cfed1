import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * A loopback port where nobody listens, for programs that take no port 0. It is below the range from which systems take ports of
 * outgoing connections, so that none of those takes it before it is used.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(12_000, 30_000)
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
