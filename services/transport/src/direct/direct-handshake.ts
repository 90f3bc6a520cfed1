import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { ServeError } from '@tutti/errors'

/*
 * Both ends prove to one another that they know the key of the step's heartbeats, each with a random number of the other, so that
 * nothing of it can be used again:
 *
 *   step to router: 32 random bytes
 *   router to step: 32 random bytes, proof (32), id of the router
 *   step to router: proof (32)
 *
 * A proof is HMAC-SHA256 by the key over: which end proves, both random numbers, both ids.
 */

const RANDOM_BYTES = 32
const PROOF_BYTES = 32
const MAX_ID_BYTES = 255

/** Most bytes that one end says. */
export const HANDSHAKE_BYTES: number = RANDOM_BYTES + PROOF_BYTES + MAX_ID_BYTES

/** The answer of one end, with `member` once the other end has proven who it is. */
export interface HandshakeTurn {
  readonly reply?: Uint8Array
  readonly member?: string
}

/** One end of a handshake. */
export interface Handshake {
  /** Bytes with which this end begins; undefined if the other does. */
  readonly first: Uint8Array | undefined
  /** Takes what the other end says. @throws ServeError MALFORMED_MESSAGE, ACCESS_DENIED; then the connection is of no use. */
  take(bytes: Uint8Array): HandshakeTurn
}

/** Begins the step's end of a handshake. @param key - the key that its heartbeats say. */
export function answerHandshake(key: string, step: string): Handshake {
  const stepRandom = randomBytes(RANDOM_BYTES)
  return {
    first: stepRandom,
    take: (hello) => {
      const idBytes = hello.byteLength - RANDOM_BYTES - PROOF_BYTES
      if (idBytes < 1 || idBytes > MAX_ID_BYTES) throw malformed(hello)
      const routerRandom = hello.subarray(0, RANDOM_BYTES)
      const proof = hello.subarray(RANDOM_BYTES, RANDOM_BYTES + PROOF_BYTES)
      const router = readId(hello.subarray(RANDOM_BYTES + PROOF_BYTES))
      const said = { key, stepRandom, routerRandom, step, router }
      check(proof, prove('router', said))
      return { reply: prove('step', said), member: router }
    },
  }
}

/** Begins the router's end of a handshake. @param key - the key that the heartbeats of `step` say. */
export function openHandshake(key: string, router: string, step: string): Handshake {
  const routerRandom = randomBytes(RANDOM_BYTES)
  let said: Said | undefined
  return {
    first: undefined,
    take: (bytes) => {
      if (bytes.byteLength !== RANDOM_BYTES) throw malformed(bytes)
      if (said !== undefined) {
        check(bytes, prove('step', said))
        return { member: step }
      }
      said = { key, stepRandom: Buffer.from(bytes), routerRandom, step, router }
      return { reply: Buffer.concat([routerRandom, prove('router', said), Buffer.from(router)]) }
    },
  }
}

interface Said {
  readonly key: string
  readonly stepRandom: Uint8Array
  readonly routerRandom: Uint8Array
  readonly step: string
  readonly router: string
}

function prove(by: 'router' | 'step', o: Said): Buffer {
  const { key, stepRandom, routerRandom, step, router } = o
  return createHmac('sha256', key)
    .update(JSON.stringify(['tutti direct', by, step, router]))
    .update(stepRandom)
    .update(routerRandom)
    .digest()
}

function check(got: Uint8Array, want: Uint8Array): void {
  if (timingSafeEqual(got, want)) return
  throw new ServeError('ACCESS_DENIED', 'direct connection: the other end has another key')
}

function readId(bytes: Uint8Array): string {
  const id = Buffer.from(bytes).toString('utf8')
  if (Buffer.from(id).equals(bytes)) return id
  throw new ServeError('MALFORMED_MESSAGE', 'direct connection: an id that is not UTF-8')
}

function malformed(bytes: Uint8Array): ServeError {
  const text = `direct connection: a handshake of ${bytes.byteLength} bytes`
  return new ServeError('MALFORMED_MESSAGE', text)
}
