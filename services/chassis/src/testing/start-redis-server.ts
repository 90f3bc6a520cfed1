import { env } from 'node:process'
import { onFreePort } from './free-port.ts'
import { type StartedProcess, startProcess } from './start-process.ts'

/** Makes the value for tap's `skip`: why tests that need a Redis cannot run, or false if they can. */
export function withoutRedisServer(): string | false {
  if (env['TUTTI_REDIS_SERVER']) return false
  return env['TUTTI_REDIS_SERVER_MISSING'] ?? 'TUTTI_REDIS_SERVER is not set'
}

/**
 * Starts a real redis-server, TUTTI_REDIS_SERVER, that keeps nothing on disk, and waits until it accepts connections. Stop it in
 * the test's teardown.
 *
 * @param args - further arguments, given the port.
 * @throws Error with everything it wrote, if it does not start.
 */
export function startRedisServer(
  args: (port: number) => readonly string[] = () => [],
): Promise<RedisServer> {
  return onFreePort(async (port) => {
    const server = new RedisServer(port, args(port))
    await server.restart()
    return server
  })
}

/** A redis-server of its own on 127.0.0.1. */
export class RedisServer {
  readonly port: number
  readonly #args: readonly string[]
  #process: StartedProcess | undefined

  constructor(port: number, args: readonly string[]) {
    this.port = port
    const own = { bind: '127.0.0.1', port: String(port), save: '', appendonly: 'no' }
    this.#args = [...Object.entries(own).flatMap(([name, value]) => [`--${name}`, value]), ...args]
  }

  /** Starts it again on the same port, empty, after killing it if it runs. */
  async restart(): Promise<void> {
    await this.kill()
    const server = env['TUTTI_REDIS_SERVER'] ?? 'redis-server'
    this.#process = await startProcess(server, this.#args, {
      readyWhen: (line) => line.includes('Ready to accept connections'),
    })
  }

  /** Ends it with SIGKILL, also if it is paused. Fine to call again. */
  async kill(): Promise<void> {
    await this.#process?.stop('SIGKILL')
  }

  /** Holds it: connections stay open, and nothing is answered. */
  pause(): void {
    this.#process?.kill('SIGSTOP')
  }

  resume(): void {
    this.#process?.kill('SIGCONT')
  }
}
