import { connect } from 'node:net'
import { encodeInferRequest } from '@tutti/protocol'
import type { Test } from 'tap'
import { openRawClient } from './raw-infer.ts'
import { restCall } from './rest-call.ts'
import { inferPath, JSON_LENGTH, restBody, restInfer, restOutputs } from './rest-infer.ts'
import type { Serving } from './serving.ts'
import { row, type Tensor, toFloats } from './tensors.ts'

/** Codes that an answer to a bad request may have. INTERNAL is ours only with the engine's own words. */
const GRPC_CODES = new Set([3, 5, 8, 12, 14])
const HTTP_STATUSES = new Set([400, 404, 405, 413, 414, 431, 500, 501, 503])

/** The generator of Tommy Ettinger's mulberry32: small, seeded, good enough to damage bytes. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

function request(inputs: readonly Tensor[]): Buffer {
  const parts = { modelName: 'ens_chain', modelVersion: '', id: 'h', parameters: new Map() }
  return Buffer.from(encodeInferRequest({ ...parts, inputs, outputs: [] }))
}

/** A valid request, cut short, with bytes changed, put in twice or left out; or bytes of chance. */
function damage(valid: Buffer, random: () => number): Buffer {
  const pick = (limit: number): number => Math.floor(random() * limit)
  const bytes = Buffer.from(valid)
  switch (pick(5)) {
    case 0:
      return bytes.subarray(0, pick(bytes.length))
    case 1:
      for (let i = 0; i < 1 + pick(8); i++) bytes[pick(bytes.length)] = pick(256)
      return bytes
    case 2: {
      const at = pick(bytes.length)
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(pick(at + 1))])
    }
    case 3:
      return Buffer.from(Array.from({ length: pick(200) }, () => pick(256)))
    default: {
      const at = pick(bytes.length)
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + pick(4))])
    }
  }
}

/** Requests that are well formed and wrong: shapes, datatypes, byte counts. */
function misfit(random: () => number): readonly Tensor[] {
  const pick = (limit: number): number => Math.floor(random() * limit)
  const tensor = row('X')
  const shapes = [[], [16], [1, 15], [0, 16], [9, 16], [1, -1], [2 ** 40, 2 ** 40], [1, 16, 1]]
  const datatypes = ['INT8', 'FP64', 'BYTES', 'BOOL', 'NOPE'] as const
  switch (pick(4)) {
    case 0:
      return [{ ...tensor, shape: shapes[pick(shapes.length)] ?? [] }]
    case 1:
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a datatype that there is not is the point here
      return [{ ...tensor, datatype: (datatypes[pick(datatypes.length)] ?? 'NOPE') as 'INT8' }]
    case 2:
      return [{ ...tensor, data: tensor.data.subarray(0, pick(64)) }]
    default:
      return [tensor, { ...tensor, name: 'Y' }]
  }
}

/**
 * Sends bad requests over both protocols, some at a time, and checks that each gets a typed error or, where the damage did no harm,
 * an answer.
 *
 * @returns how many were refused.
 */
export async function sendBadRequests(
  t: Test,
  serving: Serving,
  o: { readonly count: number; readonly seed: number },
): Promise<number> {
  const random = seededRandom(o.seed)
  const raw = openRawClient(t, serving)
  const valid = request([row('X')])
  const rest = restBody([row('X')])
  const wrong = new Set<string>()
  let refused = 0
  const viaGrpc = async (): Promise<void> => {
    const { error } = await raw.infer(
      random() < 0.5 ? damage(valid, random) : request(misfit(random)),
    )
    if (error === undefined) return
    refused += 1
    if (!GRPC_CODES.has(error.code)) wrong.add(`gRPC ${error.code} ${error.details}`)
  }
  const viaRest = async (): Promise<void> => {
    const headers = { [JSON_LENGTH]: String(rest.jsonBytes) }
    const body = damage(rest.body, random)
    const answer = await restCall(serving.httpPort, 'POST', inferPath('ens_chain'), {
      body,
      headers,
    })
    if (answer.status === 200) return
    refused += 1
    const text = answer.body.toString()
    const reason = answer.headers['tutti-error-reason'] ?? 'INTERNAL'
    const isTyped = text.includes('"error"') && reason !== 'INTERNAL'
    if (!HTTP_STATUSES.has(answer.status) || !isTyped) {
      wrong.add(`HTTP ${answer.status} ${text}`)
    }
  }
  const AT_A_TIME = 20
  for (let sent = 0; sent < o.count; sent += AT_A_TIME) {
    await Promise.all(
      Array.from({ length: AT_A_TIME }, (_, i) => (i % 4 === 3 ? viaRest() : viaGrpc())),
    )
  }
  t.same([...wrong], [], `typed errors only (seed ${o.seed})`)
  raw.close()
  return refused
}

/** The server still gives the right bytes over both protocols. */
export async function servesRightBytes(t: Test, serving: Serving): Promise<void> {
  const wanted = [...toFloats(row('X'))].map((x) => x + 2)
  const rest = restOutputs(await restInfer(serving, 'ens_chain', [row('X')])).get('Y')
  t.same(rest === undefined ? [] : [...toFloats({ data: rest })], wanted, 'right bytes over HTTP')
  const raw = openRawClient(t, serving)
  const { bytes, error } = await raw.infer(request([row('X')]))
  raw.close()
  t.notOk(error, 'no error over gRPC')
  t.ok(bytes?.includes(Buffer.from(Float32Array.from(wanted).buffer)), 'right bytes over gRPC')
}

/** Writes bytes to a port and waits until the server hangs up, or says something and we do. */
export function poke(port: number, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.end(bytes))
    socket.once('data', () => socket.destroy())
    socket.once('error', () => socket.destroy())
    socket.once('close', () => resolve())
  })
}
