import { createHash } from 'node:crypto'
import { DATATYPES, elementCount, isDatatype, type Parameter } from '@tutti/tensor'
import { z } from 'zod'
import type { CachedResponse } from './response-cache.ts'

/*
 * An entry: SHA-256 of the key and of all that follows, length of the head (uint32 LE), head (JSON), bytes of the outputs.
 */

const DIGEST_BYTES = 32
const HEAD_AT = DIGEST_BYTES + 4

const Head = z.object({
  outputs: z.array(
    z.object({
      name: z.string(),
      datatype: z.string().refine(isDatatype),
      shape: z.array(z.int().min(0)),
      bytes: z.int().min(0),
    }),
  ),
  /** Name, kind, and the value as text. */
  parameters: z.array(
    z.tuple([z.string(), z.enum(['bool', 'int64', 'string', 'double', 'uint64']), z.string()]),
  ),
})
type Head = z.infer<typeof Head>

/** Encodes a response as the value of its key in Redis. Copies. */
export function encodeEntry(key: string, { outputs, parameters }: CachedResponse): Buffer {
  const head: Head = {
    outputs: outputs.map(({ name, datatype, shape, data }) => ({
      name,
      datatype,
      shape: [...shape],
      bytes: data.byteLength,
    })),
    parameters: [...parameters].map(([name, one]) => [name, one.kind, printValue(one)]),
  }
  const text = Buffer.from(JSON.stringify(head))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(text.byteLength)
  const digest = Buffer.alloc(DIGEST_BYTES)
  const entry = Buffer.concat([digest, length, text, ...outputs.map(({ data }) => data)])
  entry.set(digestOf(key, entry))
  return entry
}

/**
 * Decodes the value of a key in Redis, which anybody may have written. Copies.
 *
 * @returns undefined unless the value is exactly one that `encodeEntry` made for this key.
 */
export function decodeEntry(key: string, entry: Buffer): CachedResponse | undefined {
  if (entry.byteLength < HEAD_AT) return undefined
  if (!digestOf(key, entry).equals(entry.subarray(0, DIGEST_BYTES))) return undefined
  const dataAt = HEAD_AT + entry.readUInt32LE(DIGEST_BYTES)
  const head = parseHead(entry.toString('utf8', HEAD_AT, dataAt))
  if (head === undefined) return undefined
  let at = dataAt
  const outputs = head.outputs.map(({ name, datatype, shape, bytes }) => {
    // In memory of its own, where engines may view it as numbers.
    const data = new Uint8Array(entry.subarray(at, at + bytes))
    at += bytes
    return { name, datatype, shape, data }
  })
  const fits = outputs.every(({ datatype, shape, data }) => {
    const { itemSize } = DATATYPES[datatype]
    return itemSize === null || data.byteLength === elementCount(shape) * itemSize
  })
  if (!fits || at !== entry.byteLength) return undefined
  return { outputs, parameters: head.parameters }
}

function digestOf(key: string, entry: Buffer): Buffer {
  return createHash('sha256').update(key).update(entry.subarray(DIGEST_BYTES)).digest()
}

function parseHead(text: string) {
  try {
    const { outputs, parameters } = Head.parse(JSON.parse(text))
    return { outputs, parameters: new Map(parameters.map(toParameter)) }
  } catch {
    // Not ours, whatever it is.
    return undefined
  }
}

function printValue({ value }: Parameter): string {
  return Object.is(value, -0) ? '-0' : String(value)
}

/** @throws Error for a text that `printValue` would not have written. */
function toParameter([name, kind, text]: Head['parameters'][number]): [string, Parameter] {
  const parameter = readValue(kind, text)
  if (printValue(parameter) !== text) throw new Error(`no ${kind}`)
  return [name, parameter]
}

function readValue(kind: Parameter['kind'], text: string): Parameter {
  if (kind === 'bool') return { kind, value: text === 'true' }
  if (kind === 'string') return { kind, value: text }
  if (kind === 'double') return { kind, value: Number(text) }
  const value = BigInt(text)
  if (kind === 'int64') return { kind, value: BigInt.asIntN(64, value) }
  return { kind, value: BigInt.asUintN(64, value) }
}
