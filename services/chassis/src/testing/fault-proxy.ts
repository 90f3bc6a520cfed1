import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

export interface FaultProxyOptions {
  readonly host?: string
  readonly port: number
}

/** Starts a relay to a server. Close it in the test's teardown. */
export async function startFaultProxy(target: FaultProxyOptions): Promise<FaultProxy> {
  const server = createServer({ allowHalfOpen: true })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  return new FaultProxy(target, server)
}

/** Resets a socket. One that was ended is destroyed instead: a reset would leave its handle open, and the process with it. */
export function resetSocket(socket: Socket): void {
  if (socket.destroyed) return
  if (socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}

function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address()
  if (address === null || typeof address === 'string') throw new Error('the relay has no port')
  return address.port
}

/** A TCP relay on 127.0.0.1 that can be told to misbehave, for both directions of all its connections. */
export class FaultProxy {
  readonly port: number
  readonly #target: FaultProxyOptions
  readonly #server: Server
  readonly #pairs = new Set<readonly [Socket, Socket]>()
  #delayMs = 0
  #isStalled = false
  #isRefusing = false

  constructor(target: FaultProxyOptions, server: Server) {
    this.#target = target
    this.#server = server
    this.port = portOf(server)
    server.on('connection', (client) => this.#take(client))
  }

  /** Connections that are open now. */
  get connections(): number {
    return this.#pairs.size
  }

  /** Holds every piece of data back for `ms`, order kept; 0 for none. */
  delay(ms: number): void {
    this.#delayMs = ms
  }

  /** Passes nothing on and accepts nothing new to read, until `resume`; connections stay open. */
  stall(): void {
    this.#isStalled = true
    for (const socket of [...this.#pairs].flat()) socket.pause()
  }

  resume(): void {
    this.#isStalled = false
    for (const socket of [...this.#pairs].flat()) socket.resume()
  }

  /** Resets all connections that are open; new ones are served. */
  cut(): void {
    for (const socket of [...this.#pairs].flat()) resetSocket(socket)
  }

  /** Resets new connections at once, until `accept`. */
  refuse(): void {
    this.#isRefusing = true
  }

  accept(): void {
    this.#isRefusing = false
  }

  async close(): Promise<void> {
    this.cut()
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve())
    })
  }

  #take(client: Socket): void {
    if (this.#isRefusing) {
      client.resetAndDestroy()
      return
    }
    const { host = '127.0.0.1', port } = this.#target
    const upstream = connect({ host, port, allowHalfOpen: true })
    const pair = [client, upstream] as const
    this.#pairs.add(pair)
    this.#pass(client, upstream, pair)
    this.#pass(upstream, client, pair)
    if (this.#isStalled) for (const socket of pair) socket.pause()
  }

  #pass(from: Socket, to: Socket, pair: readonly [Socket, Socket]): void {
    from.setNoDelay(true)
    from.on('data', (chunk) => this.#later(() => to.write(chunk), to))
    from.on('end', () => this.#later(() => to.end(), to))
    // An error is followed by 'close'.
    from.on('error', () => {})
    from.on('close', (hadError) => {
      // After a clean end what is delayed still has to arrive; the other side then ends by itself.
      if (hadError) to.destroy()
      if (pair.every((socket) => socket.destroyed)) this.#pairs.delete(pair)
    })
  }

  /** Timers of equal length fire in the order in which they were set, so data keeps its order. */
  #later(act: () => void, to: Socket): void {
    const run = (): void => {
      if (!to.destroyed) act()
    }
    if (this.#delayMs === 0) run()
    else setTimeout(run, this.#delayMs)
  }
}
