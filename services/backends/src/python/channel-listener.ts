import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A channel that an instance's process opens, in the words of python/tutti_worker/instance.py. */
export type Channel = 'frames' | 'stdout' | 'stderr'

/** A caller has this long to say who it is. */
const GREETING_MS = 10_000
/** Token, blank, channel, line end. */
const MOST_GREETING_BYTES = 64

/**
 * Listener for the connections of instances' processes. On Linux its name is in the abstract namespace: it leaves nothing on disk
 * and ends with this process. Anybody on this machine may connect, so a caller must send a token that only a forked process
 * knows.
 */
export class ChannelListener {
  readonly address: string
  readonly #server: Server
  readonly #directory: string | undefined
  readonly #expected = new Map<string, (channel: Channel, socket: Socket) => void>()

  private constructor(server: Server, address: string, directory: string | undefined) {
    this.#server = server
    this.address = address
    this.#directory = directory
  }

  static async open(): Promise<ChannelListener> {
    const isAbstract = process.platform === 'linux'
    const directory = isAbstract ? undefined : mkdtempSync(join(tmpdir(), 'tutti-'))
    const name = `tutti-${randomBytes(16).toString('hex')}`
    const address = directory === undefined ? `\0${name}` : join(directory, 's')
    const server = createServer()
    const listener = new ChannelListener(server, address, directory)
    server.on('connection', (socket) => listener.#greet(socket))
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ path: address }, resolve)
    })
    // The caller that waits for an instance keeps the process alive, not this.
    server.unref()
    return listener
  }

  /**
   * Lets a process connect.
   *
   * @param onChannel - gets each channel, paused, and owns its socket.
   * @returns the token to tell the process, and a function that makes the token invalid.
   */
  expect(onChannel: (channel: Channel, socket: Socket) => void): {
    readonly token: string
    readonly forget: () => void
  } {
    const token = randomBytes(16).toString('hex')
    this.#expected.set(token, onChannel)
    return { token, forget: () => void this.#expected.delete(token) }
  }

  close(): void {
    this.#server.close()
    if (this.#directory !== undefined) rmSync(this.#directory, { recursive: true, force: true })
  }

  /** Reads a greeting byte for byte of a line, and leaves what follows in the socket. */
  #greet(socket: Socket): void {
    const timer = setTimeout(() => socket.destroy(), GREETING_MS).unref()
    let text = ''
    socket.on('error', () => socket.destroy())
    const onReadable = (): void => {
      for (;;) {
        const byte: Buffer | null = socket.read(1)
        if (byte === null) return
        if (byte[0] === 10) break
        text += byte.toString('latin1')
        if (text.length > MOST_GREETING_BYTES) {
          socket.destroy()
          return
        }
      }
      clearTimeout(timer)
      socket.off('readable', onReadable)
      this.#take(text, socket)
    }
    socket.on('readable', onReadable)
  }

  #take(greeting: string, socket: Socket): void {
    const [token = '', channel = ''] = greeting.split(' ')
    const onChannel = this.#expected.get(token)
    if (onChannel === undefined || !isChannel(channel)) socket.destroy()
    else onChannel(channel, socket)
  }
}

function isChannel(text: string): text is Channel {
  return text === 'frames' || text === 'stdout' || text === 'stderr'
}
