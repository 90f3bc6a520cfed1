import type { IncomingHttpHeaders } from 'node:http'

const BEARER = /^bearer +([\x21-\x7e]+) *$/i

/** Reads the token of `Authorization: Bearer TOKEN`; undefined if there is none. */
export function bearerTokenOf({ authorization = '' }: IncomingHttpHeaders): string | undefined {
  return BEARER.exec(authorization)?.[1]
}
