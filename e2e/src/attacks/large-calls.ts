import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { encodeInferRequest } from '@tutti/protocol'
import { restCall } from '../rest-call.ts'
import { restInfer, restOutputs } from '../rest-infer.ts'
import type { Target } from '../serving.ts'
import type { Tensor } from '../tensors.ts'
import type { Random } from './random.ts'
import { framed } from './text-calls.ts'
import { ANSWER_MS, callOnce } from './whole-calls.ts'

const MEBIBYTE = 2 ** 20
/** How long an attacker leaves a body half sent. */
const HALF_MS = 2000

/** The shipped ensemble that makes four times as many bytes of a picture, twice. */
export const PICTURE_ENSEMBLE = 'ens_face_restoration_v2.1'
/** A model that answers the texts that it gets. */
export const TEXT_MODEL = 'identity_string'
/** A model that divides `a` by `b`, INT64. */
export const DIVIDING_MODEL = 'divide'
/** Elements of `a` and `b`. */
export const DIVIDED = 16

async function infer(grpcPort: number, modelName: string, input: Tensor): Promise<string> {
  const parts = { modelName, modelVersion: '', id: '', parameters: new Map() }
  const frame = framed(encodeInferRequest({ ...parts, inputs: [input], outputs: [] }))
  const path = 'inference.GRPCInferenceService/ModelInfer'
  return await callOnce(grpcPort, { path, encoding: 'gzip', frame })
}

/** Sends a square picture of zeros, compressed, to a model or an ensemble. @returns the status of gRPC. */
export async function sendPicture(grpcPort: number, model: string, side: number): Promise<string> {
  const data = Buffer.alloc(side * side * 3)
  const name = model === PICTURE_ENSEMBLE ? 'raw_image' : 'input__0'
  return await infer(grpcPort, model, { name, datatype: 'UINT8', shape: [side, side, 3], data })
}

/** Sends a text very many times, compressed. @returns the status of gRPC. */
export async function sendTexts(grpcPort: number, text: string, count: number): Promise<string> {
  const element = Buffer.alloc(4 + text.length, `    ${text}`)
  element.writeUInt32LE(text.length)
  const data = Buffer.alloc(count * element.byteLength, element)
  const shape = [1, count]
  return await infer(grpcPort, TEXT_MODEL, { name: 'x', datatype: 'BYTES', shape, data })
}

/** Sends texts of no or few bytes, up to millions of them. @returns the status of gRPC. */
export async function sendAnyTexts(grpcPort: number, { pick, oneOf }: Random): Promise<string> {
  const text = 'x'.repeat(oneOf([0, 0, 1, 100]))
  return await sendTexts(grpcPort, text, 1 + pick(oneOf([10, 2 ** 18, 2 ** 22])))
}

const UNITS = ['1.25,', '0,', '{},', '[],', '"x",', 'NaN,', '-1e9,', '"\\u0100",', '{"a":1},']

/**
 * Posts a long JSON document, compressed, or a part of it.
 *
 * @returns its HTTP status; undefined for a part, which a server may end as it likes.
 */
export async function postLongJson(
  { httpPort }: Target,
  { pick, oneOf, chance }: Random,
): Promise<number | undefined> {
  const bytes = Math.floor(oneOf([0.3, 3, 60]) * MEBIBYTE * (0.5 + pick(500) / 1000))
  const text = `{"inputs":[],"x":[${oneOf(UNITS).repeat(2)}`
  const body = gzipSync(
    Buffer.concat([Buffer.from(text), Buffer.alloc(bytes, oneOf(UNITS)), Buffer.from('1]}')]),
    { level: 1 },
  )
  const path = '/v2/models/add_one_batch/infer'
  const encoding = { 'content-encoding': 'gzip' }
  if (chance(0.7)) {
    const signal = AbortSignal.timeout(ANSWER_MS)
    return (await restCall(httpPort, 'POST', path, { headers: encoding, body, signal })).status
  }
  const socket = connect(httpPort, '127.0.0.1')
  socket.on('error', () => {}).resume()
  const head = `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-encoding: gzip\r\ncontent-length: ${body.byteLength + 1}\r\n\r\n`
  socket.write(Buffer.concat([Buffer.from(head), body]))
  await sleep(pick(HALF_MS))
  socket.resetAndDestroy()
  return undefined
}

function int64(name: string, values: readonly bigint[]): Tensor {
  const data = new Uint8Array(BigInt64Array.from(values).buffer)
  return { name, datatype: 'INT64', shape: [values.length], data }
}

/** Divides the least integer, and the next one, by -1. @returns what is wrong with the answer. */
export async function divideLeast(target: Target, { pick }: Random): Promise<string | undefined> {
  const least = -(2n ** 63n)
  const numbers = Array.from({ length: DIVIDED }, () => least + BigInt(pick(2)))
  const divisors = numbers.map(() => -1n)
  const answer = await restInfer(target, DIVIDING_MODEL, [
    int64('a', numbers),
    int64('b', divisors),
  ])
  // One who is slow to ask is not answered.
  if (answer.status === 408 || answer.status === 503) return undefined
  const wanted = int64(
    'y',
    numbers.map((number) => BigInt.asIntN(64, -number)),
  )
  const got = restOutputs(answer).get('y')
  const isRight = got !== undefined && Buffer.compare(got, wanted.data) === 0
  return isRight ? undefined : 'a wrong quotient'
}
