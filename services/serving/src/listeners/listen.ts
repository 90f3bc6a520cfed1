import type { Server } from 'node:net'
import { hostPort, listenAt } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'

/** A listening server. To end it, call its methods in their order. */
export interface RunningServer {
  readonly port: number
  /** Takes no more connections and requests; what was accepted goes on. */
  stopAccepting(): void
  /**
   * Waits until every accepted request is answered, and resolves with true. After `timeoutMs` it answers the requests that are
   * left with SERVER_STOPPING, and resolves with false.
   */
  drain(o: { readonly timeoutMs: number }): Promise<boolean>
  /** Ends everything at once; after `drain` nothing is left to end. */
  close(): Promise<void>
}

const MENDING: Readonly<Record<string, string>> = {
  EADDRINUSE:
    'another program has the port, or another flag names it: end that program, or choose another port (0: any free one)',
  EACCES: 'ports below 1024 need rights: choose another port',
  EADDRNOTAVAIL: 'this machine does not have the address: choose another address',
}

/**
 * Lets a server listen.
 *
 * @param o.port - 0 for any free one.
 * @param o.onError - called with errors after it listens: without a listener an accept that fails (no file descriptor
 * left) would end the process.
 * @returns the port.
 * @throws ServeError SETTING_INVALID if the address cannot be listened on.
 */
export function listenOn(
  server: Server,
  o: {
    readonly address: string
    readonly port: number
    readonly onError: (error: Error) => void
  },
): Promise<number> {
  const { address, port } = o
  return new Promise((resolve, reject) => {
    const refuse = ({ message, code = '' }: NodeJS.ErrnoException): void => {
      const mending = MENDING[code]
      const problem = mending === undefined ? message : `${code}, ${mending}`
      // Without a cause, whose stack a log would show: it has nothing but what the system says.
      reject(
        new ServeError(
          'SETTING_INVALID',
          `cannot listen on ${hostPort(address, port)}: ${problem}`,
        ),
      )
    }
    server.once('error', refuse)
    server.listen(listenAt(address, port), () => {
      server.off('error', refuse)
      server.on('error', o.onError)
      const bound = server.address()
      if (bound !== null && typeof bound === 'object') resolve(bound.port)
    })
  })
}
