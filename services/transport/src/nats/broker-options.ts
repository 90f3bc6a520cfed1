import { readFileSync } from 'node:fs'
import { ServeError } from '@tutti/errors'
import type { BrokerOptions } from '../peers.ts'

/** A server's URL as `nats://` and `tls://` allow it. */
const SERVER = /^(?:(nats|tls):\/\/)?[^\s/@]+$/

/**
 * Checks what can be checked before anything is sent.
 *
 * @throws ServeError SETTING_INVALID that names the field: no or odd servers, two ways to sign in, a file that cannot be read.
 */
export function checkBrokerOptions(broker: BrokerOptions): void {
  if (broker.servers.length === 0) refuse('servers', 'none', 'at least one')
  for (const server of broker.servers) {
    if (!SERVER.test(server)) refuse('servers', server, 'nats://host:port or tls://host:port')
  }
  const ways = ['user', 'token', 'nkeyFile', 'credentialsFile'] as const
  const given = ways.filter((way) => broker[way] !== undefined)
  if (given.length > 1) refuse(given[1] ?? '', given.join(' and '), 'one way to sign in')
  if (broker.password !== undefined && broker.user === undefined) {
    refuse('password', 'a password', 'a user with it')
  }
  checkFile('nkeyFile', broker.nkeyFile)
  checkFile('credentialsFile', broker.credentialsFile)
  const { caFile, certFile, keyFile } = broker.tls ?? {}
  checkFile('tls.caFile', caFile)
  checkFile('tls.certFile', certFile)
  checkFile('tls.keyFile', keyFile)
  if ((certFile === undefined) !== (keyFile === undefined)) {
    refuse('tls', 'a certificate or a key alone', 'certFile and keyFile')
  }
}

/** True if the connection must be encrypted. */
export function wantsTls(broker: BrokerOptions): boolean {
  return broker.tls !== undefined || broker.servers.some((server) => server.startsWith('tls://'))
}

function checkFile(field: string, path: string | undefined): void {
  if (path === undefined) return
  try {
    readFileSync(path)
  } catch (error) {
    throw new ServeError('SETTING_INVALID', `broker ${field} "${path}": it cannot be read`, {
      details: { field },
      cause: error,
    })
  }
}

function refuse(field: string, got: string, want: string): never {
  throw new ServeError('SETTING_INVALID', `broker ${field}: got ${got}, want ${want}`, {
    details: { field },
  })
}
