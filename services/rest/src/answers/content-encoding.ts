import { Readable, type Transform } from 'node:stream'
import { constants, createDeflate, createGunzip, createGzip, createInflate } from 'node:zlib'
import { ServeError } from '@tutti/errors'
import { ENCODING_HEADER, type RestReply } from './rest-reply.ts'

export type CompressedEncoding = 'gzip' | 'deflate'
export type ContentEncoding = 'identity' | CompressedEncoding

/**
 * Reads a `content-encoding` header; absent or empty means identity.
 *
 * @throws ServeError UNSUPPORTED (HTTP 501, triton-semantics 9.15) for an encoding other than gzip and deflate.
 */
export function parseContentEncoding(header: string | undefined): ContentEncoding {
  if (header === undefined) return 'identity'
  const name = header.trim().toLowerCase()
  if (name === '' || name === 'identity') return 'identity'
  if (name === 'gzip' || name === 'deflate') return name
  throw new ServeError('UNSUPPORTED', 'Unsupported compression type', {
    details: { field: ENCODING_HEADER },
  })
}

/**
 * Chooses the encoding of an answer: the one with the greatest weight, the first of several. Returns identity if the client
 * accepts none of ours. An encoding is not accepted if its weight is 0 or no number.
 */
export function chooseEncoding(acceptEncoding: string | undefined): ContentEncoding {
  let best: ContentEncoding = 'identity'
  let bestWeight = 0
  for (const item of acceptEncoding?.toLowerCase().split(',') ?? []) {
    const [name = '', ...parameters] = item.split(';').map((part) => part.trim())
    if (name !== 'identity' && name !== 'gzip' && name !== 'deflate') continue
    const written = parameters.find((parameter) => parameter.startsWith('q='))
    const weight = written === undefined ? 1 : Number.parseFloat(written.slice(2))
    if (!(weight > bestWeight)) continue
    best = name
    bestWeight = weight
  }
  return best
}

/** Creates a transform that undoes the encoding. `deflate` is zlib's format, as in RFC 9110. */
export function createDecoder(encoding: CompressedEncoding): Transform {
  return encoding === 'gzip' ? createGunzip() : createInflate()
}

const ENCODERS = { gzip: createGzip, deflate: createDeflate }
/** Bytes of the parts of a compressed answer. */
const CHUNK_BYTES = 65_536

/**
 * Compresses a reply's body off the main thread, part by part: joining the parts would block the loop. It uses level 1, since
 * tensors hardly compress and the client waits meanwhile. Returns the reply itself for identity or an empty body.
 */
export async function encodeReply(reply: RestReply, encoding: ContentEncoding): Promise<RestReply> {
  if (encoding === 'identity' || reply.byteLength === 0) return reply
  const encoder = ENCODERS[encoding]({ level: constants.Z_BEST_SPEED, chunkSize: CHUNK_BYTES })
  const parts: Buffer[] = []
  for await (const part of Readable.from(reply.parts).pipe(encoder)) parts.push(part)
  const byteLength = parts.reduce((sum, part) => sum + part.byteLength, 0)
  const headers = { ...reply.headers, [ENCODING_HEADER]: encoding }
  return { ...reply, parts, byteLength, headers }
}
