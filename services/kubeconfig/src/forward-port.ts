import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { errorText } from '@tutti/chassis'
import { type ClusterAccess, KubeError, noAnswer, objectPath, POD, toKubeError } from '@tutti/kube'
import { createWebSocketStream, WebSocket } from 'ws'
import { toMessages, toPieces } from './forward-messages.ts'

/** Protocol in which Kubernetes forwards a port: each message begins with the number of its channel. */
const PROTOCOL = 'v4.channel.k8s.io'
const LOOPBACK = '127.0.0.1'
/** Characters of a refusal, after which reading ends. */
const MOST_CHARS = 65_536

/** The port of a pod to reach, and how. */
export interface ForwardOptions {
  readonly access: ClusterAccess
  readonly namespace: string
  readonly pod: string
  /** Port of the pod. */
  readonly port: number
  /** Milliseconds that the API server has to answer. */
  readonly timeoutMs: number
  readonly userAgent: string
}

/** A port of 127.0.0.1 that leads to a pod's port until it is closed. */
export interface ForwardedPort {
  readonly port: number
  /** Error text of the latest connection that failed; undefined if none has failed. */
  readonly failure: string | undefined
  /** Closes the port, and cuts its open connections. */
  close(): Promise<void>
}

/**
 * Forwards a free port of this machine to a pod's port, through the API server. Each connection has its own WebSocket; the first
 * WebSocket is open when this resolves. The caller closes the port.
 *
 * @throws KubeError with the API server's text if it refuses the request; KubeError also if it does not answer.
 */
export async function forwardPort(o: ForwardOptions): Promise<ForwardedPort> {
  const forward = new Forward(o)
  try {
    await forward.open()
    return forward
  } catch (error) {
    await forward.close()
    throw error
  }
}

class Forward implements ForwardedPort {
  port = 0
  failure: string | undefined
  readonly #options: ForwardOptions
  readonly #server = createServer((socket) => void this.#serve(socket))
  /** Sockets and streams of WebSockets. */
  readonly #open = new Set<Duplex>()
  /** Waits for the first connection. */
  #first: Duplex | undefined
  #isClosed = false

  constructor(o: ForwardOptions) {
    this.#options = o
  }

  async open(): Promise<void> {
    this.#first = await this.#connect()
    await once(this.#server.listen(0, LOOPBACK), 'listening')
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens on TCP
    this.port = (this.#server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const stream of this.#open) stream.destroy()
    if (!this.#server.listening) return
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #serve(socket: Socket): Promise<void> {
    this.#keep(socket)
    try {
      const first = this.#first
      this.#first = undefined
      await pipeline(socket, toMessages, first ?? (await this.#connect()), toPieces, socket)
    } catch (error) {
      this.failure = errorText(error)
      socket.destroy()
    }
  }

  /** Connects, once more with new credentials if they are refused, as each other request to the API server does. */
  async #connect(): Promise<Duplex> {
    try {
      return await this.#connectOnce()
    } catch (error) {
      if (!(error instanceof KubeError) || error.status !== 401) throw error
      this.#options.access.refresh()
      return await this.#connectOnce()
    }
  }

  async #connectOnce(): Promise<Duplex> {
    const { access, timeoutMs, userAgent } = this.#options
    const path = this.#path()
    const { authorization, ...certificates } = await access.credentials().catch((error) => {
      throw noAnswer('NoCredentials', `${path}: no credentials: ${errorText(error)}`, error)
    })
    if (this.#isClosed) throw noAnswer('Closed', `${path}: the port is closed`)
    const { server, serverName: servername, isServerUnverified } = access
    const tls = { ...certificates, servername, rejectUnauthorized: isServerUnverified !== true }
    const prefix = server.href.replace(/^http/, 'ws').replace(/\/+$/, '')
    const socket = new WebSocket(prefix + path, PROTOCOL, {
      ...tls,
      handshakeTimeout: timeoutMs,
      perMessageDeflate: false,
      headers: { 'user-agent': userAgent, ...(authorization !== undefined && { authorization }) },
    })
    // Now: what comes with the answer would be lost before a reader is there.
    const stream = this.#keep(createWebSocketStream(socket, { readableObjectMode: true }))
    await untilOpen(socket, path)
    return stream
  }

  #path(): string {
    const { namespace, pod: name, port } = this.#options
    return `${objectPath(POD, { namespace, name }, 'portforward')}?ports=${port}`
  }

  #keep<T extends Duplex>(stream: T): T {
    this.#open.add(stream)
    // Who reads it is told, too.
    stream.on('error', () => {})
    stream.once('close', () => this.#open.delete(stream))
    return stream
  }
}

function untilOpen(socket: WebSocket, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('error', (error) =>
      reject(noAnswer('NoConnection', `${path}: ${errorText(error)}`, error)),
    )
    socket.once('unexpected-response', (_request, response: IncomingMessage) => {
      const { statusCode: status = 0 } = response
      const retryAfter = response.headers['retry-after']
      readText(response)
        .then((text) => reject(toKubeError({ title: path, status, retryAfter, text })), reject)
        .finally(() => socket.terminate())
    })
  })
}

async function readText(response: IncomingMessage): Promise<string> {
  let text = ''
  for await (const piece of response.setEncoding('utf8')) {
    text += String(piece)
    if (text.length > MOST_CHARS) break
  }
  return text
}
