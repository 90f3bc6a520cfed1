import { gzipSync } from 'node:zlib'
import type { Random } from './random.ts'
import { type AnyCall, callOnce, field } from './whole-calls.ts'

const MODEL = 'add_one_batch'
const MEBIBYTE = 2 ** 20
/** Bytes of a message at most: so many at once, with what is made of them, leave room for other clients. */
const MOST_BYTES = 6 * MEBIBYTE
const PATHS = ['ModelInfer', 'ModelStreamInfer', 'RepositoryModelLoad'] as const
/** Whose text takes twice or six times its bytes: beyond Latin-1, escaped in JSON, or plain. */
const CHARACTERS = ['x', '\u0001', '"', '\\', 'é', '\u0100', '\u2028', '\u{1f600}'] as const

function text(tag: number, value: string): Buffer {
  return field(tag, Buffer.from(value))
}

/** A key with a text, as in `map<string, InferParameter>`. */
function parameter(key: string, value: Buffer): Buffer {
  return Buffer.concat([text(1, key), field(2, field(3, value))])
}

/** A message as gRPC frames it, compressed. */
export function framed(message: Uint8Array): Buffer {
  const packed = gzipSync(message, { level: 1 })
  const head = Buffer.of(1, 0, 0, 0, 0)
  head.writeUInt32BE(packed.byteLength, 1)
  return Buffer.concat([head, packed])
}

/** A request whose one parameter is a text of so many bytes, one of its characters beyond Latin-1. */
export function longParameter(model: string, bytes: number): Buffer {
  const value = Buffer.alloc(bytes, 'x')
  value.write('\u0100', 0)
  return framed(Buffer.concat([text(1, model), field(4, parameter('p', value))]))
}

/** A request, or a load, of long texts: parameters anywhere, names of inputs and outputs, for a model that is there or not. */
function textCall({ pick, oneOf, chance }: Random): AnyCall {
  const size = pick(oneOf([100, 4097, 300_000, MEBIBYTE, 2 * MEBIBYTE]))
  const value = Buffer.alloc(size, oneOf(CHARACTERS))
  if (chance(0.5)) value.write(oneOf(CHARACTERS), 0)
  const name = oneOf(CHARACTERS).repeat(pick(oneOf([10, 4096])))
  const times = 1 + pick(oneOf([1, 20, 5000]))
  const many = (make: (i: number) => Buffer): Buffer => {
    const most = Math.max(1, Math.floor(MOST_BYTES / (make(0).byteLength + 1)))
    return Buffer.concat(Array.from({ length: Math.min(times, most) }, (_, i) => make(i)))
  }
  const path = oneOf(PATHS)
  const isLoad = path === 'RepositoryModelLoad'
  const model = chance(0.5) ? MODEL : 'no_such_model'
  const parts = isLoad
    ? [
        text(2, chance(0.1) ? name : 'no_such_model'),
        many((i) => field(3, parameter(chance(0.5) ? 'config' : `${i}`, value))),
      ]
    : [
        text(1, model),
        oneOf([
          () => many((i) => field(4, parameter(`${i}`, value))),
          () => many((i) => field(5, text(1, `${name}${i}`))),
          () => many((i) => field(5, text(1, 'X'), field(4, parameter(`${i}`, value)))),
          () => many((i) => field(6, text(1, `${name}${i}`), field(2, parameter('p', value)))),
        ])(),
      ]
  return {
    path: `inference.GRPCInferenceService/${path}`,
    encoding: 'gzip',
    frame: framed(Buffer.concat(parts)),
  }
}

/** Sends such a call. @returns its status. @throws Error if it has none. */
export async function callWithTexts(port: number, random: Random): Promise<string> {
  return await callOnce(port, textCall(random))
}
