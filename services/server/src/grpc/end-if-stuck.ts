import type { Socket } from 'node:net'
import type { Clock } from '@tutti/chassis'
import { unsentBytes } from '../taken-bytes.ts'

/** How long a socket may take none of what was given to it, once a call on it was cut off. */
const STUCK_MS = 10_000

/**
 * Ends a connection whose client reads nothing at all: what was given to its socket keeps the memory of answers, also of those that
 * were cut off.
 */
export function endIfStuck(o: {
  readonly socket: Socket
  readonly clock: Pick<Clock, 'setTimer'>
}): void {
  const { socket, clock } = o
  const before = unsentBytes(socket)
  if (before === 0) return
  const stopTimer = clock.setTimer(STUCK_MS, () => {
    if (unsentBytes(socket) === before) socket.destroy()
  })
  socket.once('close', stopTimer)
}
