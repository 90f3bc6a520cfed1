import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import { connect as connectTcp } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { encodeInferRequest } from '@tutti/protocol'
import type { Target } from '../serving.ts'
import type { Random } from './random.ts'

/** The model that is asked: it answers a picture of zeros, which is nothing when compressed, with four times its bytes. */
export const GROWING_MODEL = 'pre_gfpgan'

/** How a client holds bytes of a server for which it does nothing more. */
export const HOLDS = [
  'unread',
  'unread stream',
  'begun',
  'begun gzip',
  'begun REST',
  'drip',
] as const
export type Hold = (typeof HOLDS)[number]

export interface HoldOptions {
  /** Pixels of each side of the picture. */
  readonly side: number
  /** Calls on the connection. */
  readonly calls: number
  readonly token?: string
}

/** A client that holds bytes until it is closed. */
export interface Holding {
  /** Resolves once all was sent. */
  readonly sent: Promise<unknown>
  close(): void
}

function frame(message: Uint8Array, isGzip: boolean): Buffer {
  const body = isGzip ? gzipSync(message) : message
  const head = Buffer.alloc(5)
  head[0] = Number(isGzip)
  head.writeUInt32BE(body.byteLength, 1)
  return Buffer.concat([head, body])
}

function picture(side: number): Uint8Array {
  const data = Buffer.alloc(side * side * 3)
  const input = { name: 'input__0', datatype: 'UINT8', shape: [side, side, 3], data } as const
  const parts = { modelName: GROWING_MODEL, modelVersion: '', id: '', parameters: new Map() }
  return encodeInferRequest({ ...parts, inputs: [input], outputs: [] })
}

function open(
  session: ClientHttp2Session,
  method: string,
  token: string | undefined,
): ClientHttp2Stream {
  const stream = session.request({
    ':method': 'POST',
    ':path': `/inference.GRPCInferenceService/${method}`,
    'content-type': 'application/grpc',
    'grpc-encoding': 'gzip',
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  })
  stream.on('error', () => {})
  return stream
}

/** Begins to hold bytes of a server. */
export function holdBytes(target: Target, hold: Hold, o: HoldOptions): Holding {
  return hold === 'begun REST' ? holdRest(target, o) : holdGrpc(target, hold, o)
}

function holdGrpc({ grpcPort }: Target, hold: Hold, { side, calls, token }: HoldOptions): Holding {
  const isUnread = hold === 'unread' || hold === 'unread stream'
  const session = connect(
    `http://127.0.0.1:${grpcPort}`,
    isUnread ? { settings: { initialWindowSize: 0 } } : {},
  )
  session.on('error', () => {})
  const message = picture(side)
  const timers: NodeJS.Timeout[] = []
  const begin = (): void => {
    const stream = open(
      session,
      hold === 'unread stream' ? 'ModelStreamInfer' : 'ModelInfer',
      token,
    )
    const plain = frame(message, false)
    if (hold === 'unread') stream.end(frame(message, true))
    else if (hold === 'unread stream') {
      for (let i = 0; i < 3; i++) stream.write(frame(message, true))
    } else if (hold === 'begun gzip') stream.write(frame(message, true))
    else {
      let sent = plain.byteLength - 1000
      stream.write(plain.subarray(0, sent))
      const drip = (): void => {
        if (!stream.destroyed) stream.write(plain.subarray(sent, ++sent))
      }
      if (hold === 'drip') timers.push(setInterval(drip, 200))
    }
  }
  // The setting counts once the server has it.
  const sent = new Promise<void>((resolve) => {
    session.once('close', () => resolve())
    session.once('connect', () => {
      session.ping(() => {
        for (let i = 0; i < calls && !session.destroyed; i++) begin()
        // The server may have ended it meanwhile; then it closes.
        if (!session.destroyed) session.ping(() => resolve())
      })
    })
  })
  const close = (): void => {
    for (const timer of timers) clearInterval(timer)
    session.destroy()
  }
  return { sent, close }
}

function holdRest({ httpPort }: Target, { side, token }: HoldOptions): Holding {
  const socket = connectTcp(httpPort, '127.0.0.1')
  socket.on('error', () => {})
  socket.resume()
  const body = gzipSync(Buffer.alloc(side * side * 3, ' '))
  const headers = [
    `POST /v2/models/${GROWING_MODEL}/infer HTTP/1.1`,
    'host: x',
    'content-encoding: gzip',
    `content-length: ${body.byteLength + 1}`,
    ...(token === undefined ? [] : [`authorization: Bearer ${token}`]),
  ]
  const head = `${headers.join('\r\n')}\r\n\r\n`
  const sent = new Promise<void>((resolve) => {
    socket.once('close', () => resolve())
    socket.write(head)
    socket.write(body, () => resolve())
  })
  return { sent, close: () => void socket.destroy() }
}

/** Holds bytes in a way of chance, and leaves after a while of chance. */
export async function holdAnyBytes(target: Target, random: Random): Promise<void> {
  const { pick, oneOf } = random
  const o = { side: 16 + pick(oneOf([64, 512, 1024])), calls: 1 + pick(oneOf([1, 4, 32])) }
  const holding = holdBytes(target, oneOf(HOLDS), o)
  await Promise.race([holding.sent, sleep(5000)])
  await sleep(pick(1500))
  holding.close()
}
