import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { BlockList } from 'node:net'
import { ServeError } from '@tutti/errors'
import { bearerTokenOf } from '../access/bearer-token.ts'

/** The caller of a load or an unload. */
export interface ControlCaller {
  readonly headers: IncomingHttpHeaders
  /** IP address of the connection; undefined if that is gone. */
  readonly address: string | undefined
}

/** Checks that a caller may load and unload models. @throws ServeError for a caller that may not. */
export type ControlGuard = (caller: ControlCaller) => void

export interface ControlGuardOptions {
  /**
   * Function that reads the wanted bearer token, for each call anew; absent: none is wanted.
   *
   * @throws ServeError if it cannot be read.
   */
  readonly readToken?: (() => string) | undefined
  /** True to refuse callers from other machines. */
  readonly isLoopbackOnly: boolean
}

export function createControlGuard({
  readToken,
  isLoopbackOnly,
}: ControlGuardOptions): ControlGuard {
  return ({ headers, address = '' }) => {
    if (isLoopbackOnly && !isLoopback(address)) {
      const text = `load and unload are not allowed from ${address}, want a loopback address`
      throw new ServeError('MODEL_CONTROL_REFUSED', text, { code: 'PERMISSION_DENIED' })
    }
    if (readToken !== undefined) checkToken(bearerTokenOf(headers), readToken())
  }
}

/** Compares digests: how long that takes says nothing about the token. */
function checkToken(got: string | undefined, want: string): void {
  if (got !== undefined && timingSafeEqual(digestOf(got), digestOf(want))) return
  const what = got === undefined ? 'no bearer token' : 'a bearer token that is not known'
  throw new ServeError('UNAUTHENTICATED', `authorization: got ${what}, want that of model control`)
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

export function isLoopback(address: string): boolean {
  // `::ffff:127.0.0.1` is the IPv4 address on a socket of both families.
  return LOOPBACK.check(address, address.includes(':') ? 'ipv6' : 'ipv4')
}
