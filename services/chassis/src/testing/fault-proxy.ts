import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

export interface FaultProxyOptions {
  readonly host?: string
  readonly port: number
}

/** A TCP relay on 127.0.0.1 that can be told to misbehave, for both directions of all its connections. */
export interface FaultProxy {
  readonly port: number
  /** Connections that are open now. */
  readonly connections: number
  /** Holds every piece of data back for `ms`, order kept; 0 for none. */
  delay(ms: number): void
  /** Passes nothing on and accepts nothing new to read, until `resume`; connections stay open. */
  stall(): void
  resume(): void
  /** Resets all connections that are open; new ones are served. */
  cut(): void
  /** Resets new connections at once, until `accept`. */
  refuse(): void
  accept(): void
  close(): Promise<void>
}

/** Starts a relay to a server. Close it in the test's teardown. */
export async function startFaultProxy(target: FaultProxyOptions): Promise<FaultProxy> {
  const relay = new Relay(target)
  const server = createServer({ allowHalfOpen: true }, (client) => relay.take(client))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    port: portOf(server),
    get connections() {
      return relay.connections
    },
    delay: (ms) => relay.delay(ms),
    stall: () => relay.stall(true),
    resume: () => relay.stall(false),
    cut: () => relay.cut(),
    refuse: () => relay.refuse(true),
    accept: () => relay.refuse(false),
    close: async () => {
      relay.cut()
      await new Promise<void>((resolve) => {
        server.close(() => resolve())
      })
    },
  }
}

/** A socket that was ended cannot be reset any more: Node would then leave its handle open, and the process with it. */
function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}

function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address()
  if (address === null || typeof address === 'string') throw new Error('the relay has no port')
  return address.port
}

class Relay {
  readonly #target: FaultProxyOptions
  readonly #pairs = new Set<readonly [Socket, Socket]>()
  #delayMs = 0
  #isStalled = false
  #isRefusing = false

  constructor(target: FaultProxyOptions) {
    this.#target = target
  }

  get connections(): number {
    return this.#pairs.size
  }

  delay(ms: number): void {
    this.#delayMs = ms
  }

  refuse(isRefusing: boolean): void {
    this.#isRefusing = isRefusing
  }

  stall(isStalled: boolean): void {
    this.#isStalled = isStalled
    for (const pair of this.#pairs) {
      for (const socket of pair) {
        if (isStalled) socket.pause()
        else socket.resume()
      }
    }
  }

  cut(): void {
    for (const pair of this.#pairs) {
      for (const socket of pair) reset(socket)
    }
  }

  take(client: Socket): void {
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
