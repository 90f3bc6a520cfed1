import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe } from 'node:diagnostics_channel'
import { Socket } from 'node:net'
import { propertyOf } from './foreign-error.ts'

/** Sockets that one attempt has opened; undefined once it is over, as its context lasts as long as its connection. */
interface Attempt {
  sockets: Socket[] | undefined
}

const attempts = new AsyncLocalStorage<Attempt>()

subscribe('net.client.socket', (message) => {
  const socket = propertyOf(message, 'socket')
  if (socket instanceof Socket) attempts.getStore()?.sockets?.push(socket)
})

/**
 * Connects, and destroys what was opened if that fails: the library forgets the socket of an attempt whose time is over, and it would
 * stay open for as long as a broker that stands still does. There is one such socket every two seconds.
 */
export async function withOwnSockets<T>(connect: () => Promise<T>): Promise<T> {
  const attempt: Attempt = { sockets: [] }
  try {
    return await attempts.run(attempt, connect)
  } catch (error) {
    for (const socket of attempt.sockets ?? []) socket.destroy()
    throw error
  } finally {
    attempt.sockets = undefined
  }
}
