import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { ensureNatsServer } from '../setup/nats-server.mjs'
import { atExit } from './at-exit.mjs'

/** A nats-server on loopback. */
export async function startBroker() {
  const program = await ensureNatsServer()
  const port = await freePort()
  const child = spawn(program, ['--addr', '127.0.0.1', '--port', String(port)], { stdio: 'ignore' })
  const ended = once(child, 'exit')
  const callOff = atExit(() => child.kill('SIGTERM'))
  return {
    url: `nats://127.0.0.1:${port}`,
    async close() {
      callOff()
      child.kill('SIGTERM')
      await ended
    },
  }
}

/** A port of loopback that nobody listens on at the moment. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}
