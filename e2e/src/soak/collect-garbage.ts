import type { Serving } from '../serving.ts'

/** For the environment of a server whose garbage is to be collected when a test says so; any free port. */
export const INSPECTABLE = { NODE_OPTIONS: '--inspect=127.0.0.1:0' }

/**
 * Has a server that was started `INSPECTABLE` give back all memory that nothing refers to. Left to itself the collector does so when
 * it pays, which moves what is resident by a third of it from hour to hour.
 *
 * @throws Error if the server's inspector cannot be reached.
 */
export async function collectGarbage(serving: Serving): Promise<void> {
  const lines = serving.process.lines.join('\n')
  const [, url] = /Debugger listening on (ws:\S+)/.exec(lines) ?? []
  if (url === undefined) throw new Error('the server has no inspector')
  const socket = new WebSocket(url)
  try {
    await event(socket, 'open')
    const answered = event(socket, 'message')
    socket.send(JSON.stringify({ id: 1, method: 'HeapProfiler.collectGarbage' }))
    await answered
  } finally {
    socket.close()
  }
}

function event(socket: WebSocket, name: 'open' | 'message'): Promise<unknown> {
  return new Promise((resolve, reject) => {
    socket.addEventListener(name, resolve, { once: true })
    socket.addEventListener('error', () => reject(new Error('the inspector went')), { once: true })
  })
}
