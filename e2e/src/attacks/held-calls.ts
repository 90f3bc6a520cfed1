import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type ClientHttp2Session, connect } from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import type { Random } from './random.ts'

const INFERENCE = '/inference.GRPCInferenceService'
const HEALTH = [
  `${INFERENCE}/ServerLive`,
  `${INFERENCE}/ServerReady`,
  '/grpc.health.v1.Health/Check',
] as const
const SMALL = [
  'ServerMetadata',
  'ModelReady',
  'ModelMetadata',
  'ModelConfig',
  'ModelStatistics',
  'RepositoryIndex',
].map((name) => `${INFERENCE}/${name}`)
/** Bytes of a small call, inflated. */
const MAX_BYTES = 2 ** 16
const HOLD_MS = 300
const TICKS_PER_SECOND = 100

function call(session: ClientHttp2Session, path: string, encoding = 'identity') {
  const stream = session.request(
    {
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      'grpc-encoding': encoding,
      te: 'trailers',
    },
    { endStream: false },
  )
  // To be cut off is what an attacker expects.
  stream.on('error', () => {})
  return stream
}

async function openSession(port: number, initialWindowSize = 65_535): Promise<ClientHttp2Session> {
  const session = connect(`http://127.0.0.1:${port}`, { settings: { initialWindowSize } })
  session.on('error', () => {})
  await Promise.race([once(session, 'remoteSettings'), once(session, 'close')])
  return session
}

function frame(message: Buffer, flags = 0): Buffer {
  const head = Buffer.alloc(5)
  head[0] = flags
  head.writeUInt32BE(message.byteLength, 1)
  return Buffer.concat([head, message])
}

/** Begins very many small calls, each with bytes that it holds, and ends none, or takes no answer. */
export async function holdSmallCalls(port: number, random: Random): Promise<void> {
  const { pick, chance, oneOf } = random
  const isDeaf = chance(0.3)
  const session = await openSession(port, isDeaf ? 0 : 65_535)
  const packed = frame(gzipSync(Buffer.alloc(MAX_BYTES - pick(100))), 1)
  const plain = frame(Buffer.alloc(pick(MAX_BYTES)))
  for (let i = 0; i < 900 && !session.closed; i += 1) {
    const isPacked = chance(0.7)
    const stream = call(session, oneOf([...SMALL, ...HEALTH]), isPacked ? 'gzip' : 'identity')
    const body = isPacked ? packed : plain
    if (isDeaf) stream.end(frame(Buffer.alloc(0)))
    else if (chance(0.9)) stream.write(chance(0.8) ? body : body.subarray(0, pick(body.byteLength)))
  }
  await sleep(pick(HOLD_MS))
  session.destroy()
}

/** Has another client ask for health and metadata. @returns the calls that were not answered, with their status. */
export async function askSmall(port: number): Promise<readonly string[]> {
  const session = await openSession(port)
  try {
    const asked = [...HEALTH, `${INFERENCE}/ServerMetadata`].map(async (path) => {
      const stream = call(session, path)
      let status = 'none'
      stream.on('response', (headers) => (status = String(headers['grpc-status'] ?? status)))
      stream.on('trailers', (trailers) => (status = String(trailers['grpc-status'])))
      stream.resume()
      stream.end(frame(Buffer.alloc(0)))
      await new Promise((resolve) => stream.once('close', resolve))
      return status === '0' ? [] : [`${path}: ${status}`]
    })
    return (await Promise.all(asked)).flat()
  } finally {
    session.destroy()
  }
}

/** Processor time that a process has taken, in milliseconds. */
export function cpuMs(pid: number | undefined): number {
  const [, rest = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')
  const fields = rest.split(' ')
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND
}
