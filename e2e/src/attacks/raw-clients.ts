import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from './random.ts'

/** How long an attacker waits for the server to end what it does, before it leaves itself. */
const PATIENCE_MS = 300

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  // To be cut off is what an attacker expects.
  socket.on('error', () => {})
  socket.resume()
  await new Promise<void>((resolve) => {
    socket.once('connect', () => resolve())
    socket.once('close', () => resolve())
  })
  return socket
}

async function leave(socket: Socket, { chance, pick }: Random): Promise<void> {
  const end = performance.now() + pick(PATIENCE_MS)
  while (!socket.destroyed && performance.now() < end) await sleep(20)
  if (chance(0.5) && !socket.destroyed) socket.resetAndDestroy()
  else socket.destroy()
}

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const SERVICE = '/inference.GRPCInferenceService'
const METHODS = ['ModelInfer', 'ModelStreamInfer', 'ServerLive', 'RepositoryModelLoad', 'Nonsense']

function http2Frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.byteLength, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream & 0x7fffffff, 5)
  return Buffer.concat([head, payload])
}

function hpackText(word: string): Buffer {
  return Buffer.concat([Buffer.of(word.length), Buffer.from(word)])
}

/** A header field that is written out. @see RFC 7541, 6.2.2 */
function headerField(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.of(0), hpackText(name), hpackText(value)])
}

function headers({ oneOf, chance, pick }: Random): Buffer {
  const fields = [
    [':method', chance(0.9) ? 'POST' : 'GET'],
    [':scheme', 'http'],
    [':path', `${SERVICE}/${oneOf(METHODS)}`],
    [':authority', 'x'],
    [
      'content-type',
      chance(0.9) ? 'application/grpc' : oneOf(['text/plain', 'application/json', '']),
    ],
    ...(chance(0.2) ? [['grpc-timeout', oneOf(['1n', '0S', '-1m', '99999999H', 'x'])]] : []),
    ...(chance(0.2) ? [['grpc-encoding', oneOf(['gzip', 'deflate', 'br', ''])]] : []),
    ...Array.from({ length: chance(0.1) ? pick(200) : 0 }, (_, i) => [`x-${i}`, 'y'.repeat(100)]),
  ]
  return Buffer.concat(fields.map(([name = '', value = '']) => headerField(name, value)))
}

/** One frame: a call, a part of one, its end, a flood of settings or pings, or what no client may send. */
function anyFrames(random: Random, calls: number): Buffer {
  const { pick, chance, bytes } = random
  const stream = 1 + 2 * pick(calls + 1)
  const data = chance(0.5)
    ? Buffer.concat([Buffer.of(pick(3), 0, 0, pick(4), pick(256)), bytes(pick(300))])
    : bytes(pick(20_000))
  switch (pick(8)) {
    case 0:
    case 1:
    case 2:
      return http2Frame(0, Number(chance(0.3)), stream, data.subarray(0, 16_384))
    case 3:
      return http2Frame(3, 0, stream, Buffer.of(0, 0, 0, pick(14)))
    case 4: {
      const settings = Buffer.of(0, 1 + pick(6), 0, pick(256), pick(256), pick(256))
      return Buffer.concat(
        Array.from({ length: 1 + pick(200) }, () => http2Frame(4, 0, 0, settings)),
      )
    }
    case 5:
      return Buffer.concat(
        Array.from({ length: 1 + pick(200) }, () => http2Frame(6, 0, 0, Buffer.alloc(8))),
      )
    case 6:
      return http2Frame(8, 0, chance(0.5) ? 0 : stream, Buffer.of(pick(128), 0, 0, pick(256)))
    default:
      return http2Frame(pick(12), pick(256), stream, bytes(pick(64)))
  }
}

/** A gRPC connection that opens calls and sends parts of them, with pauses, resets, floods and nonsense between. */
export async function attackGrpc(port: number, random: Random): Promise<void> {
  const { pick, chance } = random
  const socket = await open(port)
  socket.write(chance(0.95) ? PREFACE : PREFACE.subarray(0, pick(PREFACE.byteLength)))
  socket.write(http2Frame(4, 0, 0, Buffer.alloc(0)))
  const count = 1 + pick(60)
  let calls = 0
  for (let i = 0; i < count && !socket.destroyed; i++) {
    if (chance(0.4)) {
      socket.write(http2Frame(1, 4 + Number(chance(0.2)), 1 + 2 * calls, headers(random)))
      calls += 1
    } else socket.write(anyFrames(random, calls))
    if (chance(0.1)) await sleep(pick(20))
  }
  if (chance(0.2)) socket.pause()
  await leave(socket, random)
}

/** Waits for an event, or for the end of the connection. */
async function either(socket: Socket, event: 'drain' | 'data'): Promise<void> {
  await new Promise<void>((resolve) => {
    socket.once(event, () => resolve()).once('close', () => resolve())
  })
}

/** Moves the windows of very many open calls again and again, and sends a few bytes of their bodies for it. */
export async function moveWindows(
  port: number,
  { pick, chance }: Random,
  o: { readonly calls: number; readonly changes: number },
): Promise<void> {
  const socket = await open(port)
  socket.write(PREFACE)
  socket.write(http2Frame(4, 0, 0, Buffer.alloc(0)))
  const fields = [
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', `${SERVICE}/ModelStreamInfer`],
    [':authority', 'x'],
    ['content-type', 'application/grpc'],
  ]
  const block = Buffer.concat(fields.map(([name = '', value = '']) => headerField(name, value)))
  for (let i = 0; i < o.calls; i += 1) socket.write(http2Frame(1, 4, 2 * i + 1, block))
  for (let i = 0; i < o.changes && !socket.destroyed; i += 1) {
    const window = Buffer.of(0, 4, 0, 0, pick(256), i % 256)
    const flood = [http2Frame(4, 0, 0, window)]
    if (chance(0.7)) flood.push(http2Frame(0, 0, 1 + 2 * pick(o.calls), Buffer.alloc(1)))
    if (!socket.write(Buffer.concat(flood))) {
      await either(socket, 'drain')
    }
  }
  // The server has read what was sent once it answers a ping, or the connection has ended.
  if (!socket.destroyed) {
    socket.write(http2Frame(6, 0, 0, Buffer.alloc(8)))
    await either(socket, 'data')
  }
  socket.destroy()
}

/** A connection to an HTTP port that sends a request, a part of one, several, or nonsense, and may read nothing. */
export async function attackHttp(port: number, random: Random): Promise<void> {
  const { pick, chance, oneOf, bytes } = random
  const socket = await open(port)
  const path = oneOf([
    '/metrics',
    '/livez',
    '/v2',
    '/v2/models/add_one_batch/infer',
    `/${'a'.repeat(pick(9000))}`,
  ])
  const more = oneOf([
    '',
    'content-length: 100\r\n',
    'transfer-encoding: chunked\r\n',
    'expect: 100-continue\r\n',
  ])
  const request = Buffer.from(
    `${oneOf(['GET', 'POST', 'PUT'])} ${path} HTTP/1.1\r\nhost: x\r\n${more}\r\n`,
  )
  if (chance(0.2)) socket.pause()
  const rounds = 1 + pick(20)
  for (let i = 0; i < rounds && !socket.destroyed; i++) {
    if (chance(0.6)) socket.write(request)
    else if (chance(0.5)) socket.write(request.subarray(0, pick(request.byteLength)))
    else socket.write(bytes(pick(500)))
    if (chance(0.1)) await sleep(pick(20))
  }
  await leave(socket, random)
}
