import type { Socket } from 'node:net'
import type { Clock } from '@tutti/chassis'
import { takenBytes, unsentBytes } from '@tutti/serving'

/** How long a socket may take none of what was given to it, once a call on it was cut off. */
const STUCK_MS = 10_000

/** Sockets that are looked at again: a client may have very many calls cut off. */
const WATCHED = new WeakSet<Socket>()

/**
 * Destroys a socket if its client takes none of its unsent bytes within 10 s. Unsent bytes keep the memory of answers, even of
 * calls that were cut off.
 */
export function endIfStuck(o: {
  readonly socket: Socket
  readonly clock: Pick<Clock, 'setTimer'>
}): void {
  const { socket, clock } = o
  if (unsentBytes(socket) === 0 || WATCHED.has(socket)) return
  WATCHED.add(socket)
  const before = takenBytes(socket)
  const stopTimer = clock.setTimer(STUCK_MS, () => {
    WATCHED.delete(socket)
    socket.off('close', stopTimer)
    if (unsentBytes(socket) > 0 && takenBytes(socket) === before) socket.destroy()
  })
  socket.once('close', stopTimer)
}
