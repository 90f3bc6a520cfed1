import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { hostPort } from '@tutti/chassis'
import { bug } from '@tutti/errors'
import type { LinkSettings } from '../endpoint-settings.ts'
import type { BrokerOptions } from '../endpoints.ts'
import { messageOf } from '../foreign-error.ts'
import { MessageSocket } from '../sockets/message-socket.ts'
import { type BrokerFiles, readBrokerFiles } from './broker-files.ts'
import { wantsTls } from './broker-options.ts'
import { toAuthenticator } from './nats-keys.ts'
import { type PlaceMessage, protocolError, WireParser } from './wire-parser.ts'

const DEFAULT_PORT = 4222
const CRLF = Buffer.from('\r\n')
/** Size below which a message is one write: copying it costs less than writing its pieces. */
const COPIED_BYTES = 8192

/** A message to the broker. */
export interface OutgoingBytes {
  readonly subject: string
  /** Viewed until `written`. */
  readonly bytes: Uint8Array
  /** Bytes of the message before `bytes`. */
  readonly head?: Uint8Array
  /** Subject for the answer, if one is expected. */
  readonly reply?: string
  /** Called once, when `bytes` are no longer read: they were sent, copied, or the connection is gone. */
  readonly written?: () => void
}

/** The options with which a client is connected. */
export interface ClientContext {
  readonly server: string
  readonly broker: BrokerOptions
  /** Name of the client that the broker's tools show. */
  readonly name: string
  readonly settings: Pick<LinkSettings, 'connectMs'>
  /** Bytes that are read at once where no message is on its way to its place. */
  readonly readBytes: number
  /** Called when the broker has refused something, which its text names, or is about to stop. */
  readonly complained: (what: string) => void
  /** Calls a function of a user of the client. Does not throw: returns undefined if that function did. */
  readonly guard: <T>(act: () => T) => T | undefined
}

/** The statements of a server about itself, as far as they concern us. */
interface ServerInfo {
  readonly maxPayload: number
  readonly nonce: string | undefined
  readonly offersTls: boolean
  /** True if the server is about to stop. */
  readonly isLame: boolean
}

/**
 * Connects and signs in. A client of our own: it reads each message straight to its place and copies none that is large, where
 * the library `nats` copies twice each way and makes some promises for each.
 *
 * @throws an error that `describeConnectFailure` knows.
 */
export async function openWireClient(o: ClientContext): Promise<WireClient> {
  const files = readBrokerFiles(o.broker)
  const client = new WireClient(o, files)
  const { promise: timeIsOver, reject } = Promise.withResolvers<never>()
  const { connectMs } = o.settings
  const timer = setTimeout(() => reject(codedError('TIMEOUT', 'timeout')), connectMs)
  try {
    await Promise.race([client.signedIn, timeIsOver])
  } catch (error) {
    client.destroy()
    throw error
  } finally {
    clearTimeout(timer)
  }
  return client
}

/** One connection to the broker, from the moment when it is signed in; it does not come back. */
export class WireClient {
  /** Address of the server, as HOST:PORT. */
  readonly server: string
  /** Promise that resolves when the connection can be used, and rejects if it ends before. */
  readonly signedIn: Promise<void>
  /** Promise of the reason, which resolves when the connection is gone. */
  readonly closed: Promise<string>
  isClosed = false
  readonly #context: ClientContext
  readonly #files: BrokerFiles
  readonly #parser: WireParser
  readonly #socket: MessageSocket
  readonly #host: string
  readonly #settle: ReturnType<typeof settlers>
  readonly #places = new Map<number, PlaceMessage>()
  #lastSid = 0
  /** Functions for flushes that are not answered, the oldest first. */
  readonly #pongs: (() => void)[] = []
  #hasInfo = false
  #isSignedIn = false
  /** Error that the server said before it closed the connection. */
  #refusal: Error | undefined

  constructor(o: ClientContext, files: BrokerFiles) {
    const address = toAddress(o.server)
    this.#context = o
    this.#files = files
    this.#host = address.host
    this.server = hostPort(address.host, address.port)
    this.#settle = settlers()
    this.signedIn = this.#settle.signedIn.promise
    // A failure reaches what waits for it; after the sign-in it changes nothing.
    this.signedIn.catch(() => {})
    this.closed = this.#settle.closed.promise
    const parser = new WireParser(
      {
        info: (json) => this.#informed(json),
        ping: () => this.#writeLine('PONG'),
        pong: () => this.#pongs.shift()?.(),
        refused: (text) => this.#refused(text),
        placeOf: (sid) => this.#placeOf(sid),
      },
      o.readBytes,
    )
    this.#parser = parser
    this.#socket = new MessageSocket({
      open: (onread) => connectTcp({ ...address, noDelay: true, onread }),
      reader: parser.reader,
      ended: (why) => this.#ended(why),
    })
  }

  /** Most bytes of one message, as the broker says. */
  get maxPayload(): number {
    return this.#parser.maxPayload
  }

  publish({ subject, bytes, head, reply, written }: OutgoingBytes): void {
    const size = bytes.byteLength + (head?.byteLength ?? 0)
    const to = reply === undefined ? subject : `${subject} ${reply}`
    const line = Buffer.from(`PUB ${to} ${size}\r\n`)
    const socket = this.#socket
    if (size <= COPIED_BYTES) {
      socket.write(
        Buffer.concat(head === undefined ? [line, bytes, CRLF] : [line, head, bytes, CRLF]),
      )
      written?.()
      return
    }
    socket.write(head === undefined ? line : Buffer.concat([line, head]))
    socket.write(bytes)
    socket.write(CRLF, written)
  }

  /** Subscribes to messages that are read to places. @returns ends the subscription. */
  subscribe(subject: string, place: PlaceMessage): () => void {
    const { guard } = this.#context
    this.#lastSid += 1
    const sid = this.#lastSid
    this.#places.set(sid, (head, message) => {
      const arrival = guard(() => place(head, message))
      return arrival && { into: arrival.into, arrived: () => guard(arrival.arrived) }
    })
    this.#writeLine(`SUB ${subject} ${sid}`)
    return () => {
      this.#places.delete(sid)
      this.#writeLine(`UNSUB ${sid}`)
    }
  }

  /** Waits until the broker has had all that was published. Never resolves if the connection ends before. */
  flush(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#pongs.push(resolve)
    this.#writeLine('PING')
    return promise
  }

  /** Sends what is published, then closes. */
  async close(): Promise<void> {
    await Promise.race([this.flush(), this.closed])
    this.destroy()
  }

  /** Gives the connection up at once. */
  destroy(): void {
    this.#socket.destroy()
  }

  #placeOf(sid: number): PlaceMessage {
    const place = this.#places.get(sid)
    if (place !== undefined) return place
    // Messages of one that was ended may be on their way.
    if (sid > 0 && sid <= this.#lastSid) return DROPPED
    throw protocolError(`a message is for the unknown subscription ${sid}`)
  }

  #informed(json: string): void {
    const info = parseInfo(json)
    this.#parser.maxPayload = info.maxPayload
    if (info.isLame) this.#context.complained('ldm')
    if (this.#hasInfo) return
    this.#hasInfo = true
    const { broker } = this.#context
    const mustEncrypt = wantsTls(broker)
    if (mustEncrypt && !info.offersTls) throw codedError('SERVER_OPT_NA', 'no TLS')
    if (!info.offersTls) {
      this.#signIn(info)
      return
    }
    // Bytes that came in the clear must not be taken for bytes that come encrypted.
    if (!this.#parser.reader.isEmpty) throw protocolError('bytes follow its INFO before TLS')
    const host = this.#host
    const servername = isIP(host) === 0 ? { servername: host } : {}
    const tls = { ...this.#files.tls, ...servername, host }
    const wrap = (socket: Socket, ready: () => void): Socket =>
      connectTls({ ...tls, socket }, ready)
    this.#socket.startTls(wrap, () => this.#signIn(info))
  }

  #writeLine(line: string): void {
    this.#socket.write(Buffer.from(`${line}\r\n`))
  }

  #signIn({ nonce, offersTls }: ServerInfo): void {
    const { broker, name } = this.#context
    const connect = {
      verbose: false,
      pedantic: false,
      lang: 'tutti',
      version: '1',
      protocol: 1,
      echo: false,
      headers: true,
      no_responders: true,
      tls_required: offersTls,
      name,
      ...(broker.user !== undefined && { user: broker.user, pass: broker.password?.() ?? '' }),
      ...(broker.token !== undefined && { auth_token: broker.token() }),
      ...toAuthenticator(this.#files)?.(nonce),
    }
    this.#socket.write(Buffer.from(`CONNECT ${JSON.stringify(connect)}\r\n`))
    this.#pongs.push(() => {
      this.#isSignedIn = true
      this.#settle.signedIn.resolve()
    })
    this.#writeLine('PING')
  }

  #refused(text: string): void {
    if (!KEPT_OPEN.test(text)) this.#refusal = refusalOf(text)
    if (this.#isSignedIn) this.#context.complained(text)
  }

  #ended(why: unknown): void {
    this.isClosed = true
    // The server's own error explains more than a reset that follows it.
    const error = this.#refusal ?? why ?? codedError('CONNECTION_CLOSED', 'the broker closed it')
    this.#settle.signedIn.reject(error)
    this.#settle.closed.resolve(messageOf(error))
  }
}

function settlers() {
  return {
    signedIn: Promise.withResolvers<void>(),
    closed: Promise.withResolvers<string>(),
  }
}

/** Parses an address that `checkBrokerOptions` has checked. */
function toAddress(server: string): { readonly host: string; readonly port: number } {
  if (!URL.canParse(server)) throw bug(`"${server}" is no address of a server`)
  const { hostname, port } = new URL(server)
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  return { host, port: port === '' ? DEFAULT_PORT : Number(port) }
}

function parseInfo(json: string): ServerInfo {
  let info: unknown
  try {
    info = JSON.parse(json)
  } catch {
    throw protocolError('its INFO is no JSON')
  }
  const read = (name: string): unknown =>
    typeof info === 'object' && info !== null ? Reflect.get(info, name) : undefined
  const [maxPayload, nonce] = [read('max_payload'), read('nonce')]
  if (typeof maxPayload !== 'number' || !Number.isSafeInteger(maxPayload) || maxPayload <= 0) {
    throw protocolError('its INFO has no max_payload')
  }
  return {
    maxPayload,
    nonce: typeof nonce === 'string' ? nonce : undefined,
    offersTls: read('tls_required') === true || read('tls_available') === true,
    isLame: read('ldm') === true,
  }
}

const DROPPED: PlaceMessage = () => undefined

/** Errors that the server says without closing the connection. */
const KEPT_OPEN = /^(permissions violation|maximum subscriptions|invalid (publish )?subject)/i

/** Codes for `describeConnectFailure`. */
const REFUSALS: readonly (readonly [RegExp, string])[] = [
  [/^authorization violation/i, 'AUTHORIZATION_VIOLATION'],
  [/^user authentication (expired|revoked)/i, 'AUTHENTICATION_EXPIRED'],
  [/^account authentication expired/i, 'ACCOUNT_EXPIRED'],
  [/^authentication timeout/i, 'AUTHENTICATION_TIMEOUT'],
]

function refusalOf(text: string): Error {
  const [, code] = REFUSALS.find(([pattern]) => pattern.test(text)) ?? []
  return code === undefined ? new Error(text) : codedError(code, text)
}

function codedError(code: string, text: string): Error {
  return Object.assign(new Error(text), { code })
}
