import { connect } from 'node:http2'
import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { restCall } from '../rest-call.ts'
import type { Random } from './random.ts'

const MEBIBYTE = 2 ** 20
/** An attacker waits so long for an answer: the machine is under load. */
export const ANSWER_MS = 60_000

const PATHS = [
  'inference.GRPCInferenceService/ModelInfer',
  'inference.GRPCInferenceService/ModelStreamInfer',
  'inference.GRPCInferenceService/ServerLive',
  'grpc.health.v1.Health/Check',
]

/** A length-delimited field of protobuf. */
export function field(number: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  const head = [number * 8 + 2]
  let rest = body.byteLength
  for (; rest >= 0x80; rest >>>= 7) head.push((rest & 0x7f) | 0x80)
  return Buffer.concat([Buffer.from([...head, rest]), body])
}

/** A ModelInferRequest of typed contents: one member, packed or in very many parts. */
function typedRequest({ pick, chance, oneOf, bytes }: Random): Buffer {
  const member = 1 + pick(8)
  const size = pick(oneOf([100, MEBIBYTE, 24 * MEBIBYTE]))
  const unit = Buffer.from(oneOf([[1], [0x81, 1], [member * 8, 1], [member * 8 + 2, 0], [80, 1]]))
  const run = chance(0.9) ? Buffer.alloc(size, unit) : bytes(pick(5000))
  const contents = chance(0.5) ? field(member, run) : run
  const datatype = Buffer.from(oneOf(['BOOL', 'INT32', 'INT64', 'UINT64', 'FP32', 'BYTES']))
  const input = field(5, field(1, Buffer.from('X')), field(2, datatype), field(5, contents))
  return Buffer.concat([field(1, Buffer.from('add_one_batch')), input])
}

/** Bytes that inflate to many, to typed contents, to other compressed bytes, to less than they say, or to nothing. */
function compressed(random: Random): Buffer {
  const { pick, chance, oneOf, bytes } = random
  const content = oneOf([
    () => Buffer.alloc(pick(oneOf([100, MEBIBYTE, 24 * MEBIBYTE]))),
    () => typedRequest(random),
    () => bytes(pick(5000)),
  ])()
  const pack = oneOf([gzipSync, deflateSync, deflateRawSync])
  let packed: Buffer = pack(content)
  if (chance(0.2)) packed = pack(packed)
  if (chance(0.2)) packed = Buffer.concat([packed, pack(bytes(pick(100)))])
  if (chance(0.2)) packed = packed.subarray(0, pick(packed.byteLength))
  if (chance(0.2)) packed[pick(packed.byteLength)] = pick(256)
  return packed
}

/** A gRPC call with one message. */
export interface AnyCall {
  /** Service and method. */
  readonly path: string
  readonly encoding: string
  /** The message with its head. */
  readonly frame: Buffer
}

/** Sends a call on a connection of its own. @returns its status. @throws Error if it has none. */
export async function callOnce(port: number, { path, encoding, frame }: AnyCall): Promise<string> {
  const session = connect(`http://127.0.0.1:${port}`)
  session.on('error', () => {})
  try {
    const stream = session.request({
      ':method': 'POST',
      ':path': `/${path}`,
      'content-type': 'application/grpc',
      'grpc-encoding': encoding,
    })
    let status = 'none'
    const note = (from: { readonly 'grpc-status'?: string | string[] | undefined }): void => {
      if (from['grpc-status'] !== undefined) status = String(from['grpc-status'])
    }
    stream
      .on('response', note)
      .on('trailers', note)
      .on('error', () => {})
    stream.resume()
    stream.end(frame)
    const ended = new Promise<boolean>((resolve) => {
      stream.once('close', () => resolve(true))
      setTimeout(() => resolve(false), ANSWER_MS).unref()
    })
    if (!(await ended)) throw new Error(`no status within ${ANSWER_MS} ms`)
    return stream.rstCode === 0 || status !== 'none' ? status : `reset ${stream.rstCode}`
  } finally {
    session.destroy()
  }
}

/** A gRPC call with one compressed message. @returns its status. @throws Error if it has none. */
export async function callCompressed(port: number, random: Random): Promise<string> {
  const { pick, chance, oneOf } = random
  const message = compressed(random)
  const head = Buffer.alloc(5)
  head[0] = chance(0.9) ? 1 : pick(3)
  head.writeUInt32BE(chance(0.9) ? message.byteLength : pick(2 * message.byteLength + 2), 1)
  const frame = Buffer.concat([head, message])
  const encoding = oneOf(['gzip', 'deflate', 'identity', 'br'])
  return await callOnce(port, { path: oneOf(PATHS), encoding, frame })
}

function json({ pick, oneOf }: Random): string {
  const count = 1 + pick(oneOf([10, 1000, 200_000]))
  const item = oneOf([
    '1',
    '-0',
    '1e400',
    '9'.repeat(count),
    '[]',
    '{}',
    'null',
    '"\\u0000"',
    '"\\ud800"',
    `"${'x'.repeat(count)}"`,
  ])
  const kind = pick(5)
  if (kind === 0) return `${'['.repeat(count)}${']'.repeat(count)}`
  if (kind === 1)
    return `{${Array.from({ length: Math.min(count, 20_000) }, () => `"a":${item.slice(0, 20)}`).join(',')}}`
  const long = Math.max(1, Math.min(count, Math.floor(MEBIBYTE / item.length)))
  return `[${`${item},`.repeat(long)}${item}]`
}

/** A POST with JSON that is deep, wide, long, repeated or wrong. @returns its HTTP status. @throws Error if it has none. */
export async function postJson(port: number, random: Random): Promise<number> {
  const { chance, oneOf, pick } = random
  const value = json(random)
  const input = `{"name":"X","datatype":"${oneOf(['FP32', 'INT64', 'BYTES', 'X'])}","shape":[1,16],"data":${value}}`
  const whole = oneOf([
    value,
    `{"inputs":[${input}]}`,
    `{"inputs":[${input}],"outputs":${value}}`,
    `{"parameters":${value},"inputs":[${input}]}`,
    `{"parameters":{"config":${JSON.stringify(value)}}}`,
    `{"parameters":{"x":${value},"y":1},"inputs":[${input}]}`,
    `{"id":${JSON.stringify(value)},"inputs":[${input}]}`,
  ])
  const body = chance(0.1) ? whole.slice(0, pick(whole.length)) : whole
  const path = oneOf([
    'models/ens_chain/infer',
    'models/add_one_batch/infer',
    'repository/index',
    'repository/models/add_one_batch/load',
  ])
  const signal = AbortSignal.timeout(ANSWER_MS)
  const { status } = await restCall(port, 'POST', `/v2/${path}`, { body, signal })
  return status
}

/** Origin, host, and whether a page there may change the server; an absent origin is that of a program. */
function pages(port: number): readonly (readonly [string | undefined, string, boolean])[] {
  const own = `127.0.0.1:${port}`
  return [
    [undefined, own, true],
    [undefined, 'tutti.example', true],
    [`http://${own}`, own, true],
    [`http://localhost:${port}`, `localhost:${port}`, true],
    [`http://[::1]:${port}`, `[::1]:${port}`, true],
    ['null', own, false],
    ['http://evil.example', own, false],
    [`http://127.0.0.1:${port + 1}`, own, false],
    // A name that its owner lets lead here.
    [`http://evil.example:${port}`, `evil.example:${port}`, false],
    ['https://localhost.evil.example', own, false],
    [`http://${own}@evil.example`, own, false],
    ['file://', own, false],
  ]
}

/** A load that a page or a program asks for. @returns what is wrong with its answer. */
export async function loadFromPage(port: number, random: Random): Promise<string | undefined> {
  const { oneOf } = random
  const [origin, host, isOwn] = oneOf(pages(port))
  const site = oneOf(['', 'none', 'same-origin', 'same-site', 'cross-site'])
  const type = oneOf(['', 'text/plain', 'application/json', 'multipart/form-data'])
  const headers = {
    host,
    ...(origin !== undefined && { origin }),
    ...(site !== '' && { 'sec-fetch-site': site }),
    ...(type !== '' && { 'content-type': type }),
  }
  const path = `/v2/repository/models/no_such_model/${oneOf(['load', 'unload'])}`
  const { status } = await restCall(port, 'POST', path, { headers, body: '{}' })
  const isAllowed = isOwn && site !== 'cross-site'
  if ((status !== 403) === isAllowed) return undefined
  return `HTTP ${status} for ${JSON.stringify(headers)}, which is ${isAllowed ? 'allowed' : 'not allowed'}`
}
