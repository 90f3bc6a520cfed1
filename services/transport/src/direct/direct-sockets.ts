import { connect, type Socket } from 'node:net'
import { basename, dirname } from 'node:path'
import {
  connect as connectTls,
  createSecureContext,
  TLSSocket,
  type TLSSocketOptions,
} from 'node:tls'
import { type ReadInto, readingInto } from '../sockets/message-socket.ts'

/** A host, as a name or an address, and a port. */
export interface HostPort {
  readonly host: string
  readonly port: number
}

/** The direct transport of a member. Steps listen, routers connect. */
export type DirectOptions =
  | {
      readonly kind: 'unix'
      /** Directory of the sockets of all members on this host; only their user may use it. */
      readonly directory: string
    }
  | {
      /** `tcp` proves who connects, and encrypts nothing: for a network that does. */
      readonly kind: 'tls' | 'tcp'
      /** Address at which a step listens and others reach it; port 0 is a free one. Undefined for a router. */
      readonly listen?: HostPort | undefined
      /** Address that heartbeats say instead, if others reach it through a relay. */
      readonly announce?: HostPort
    }

/** The place where a step listens. */
export type DirectTarget = { readonly path: string } | HostPort

const SOCKET_NAME = /^[0-9a-f]{16}\.sock$/

/** Reads a step's address. @returns undefined if these options do not reach it: another kind, or a socket in another directory. */
export function parseDirectAddress(
  address: string,
  options: DirectOptions,
): DirectTarget | undefined {
  if (options.kind === 'unix') {
    const path = address.startsWith('unix:') ? address.slice('unix:'.length) : ''
    // A heartbeat must not make this process talk to other sockets of the host.
    const isOurs = dirname(path) === options.directory && SOCKET_NAME.test(basename(path))
    return isOurs ? { path } : undefined
  }
  if (!URL.canParse(address)) return undefined
  const { protocol, hostname, port, pathname } = new URL(address)
  if (protocol !== `${options.kind}:` || hostname === '' || port === '') return undefined
  const isBare = pathname === '' || pathname === '/'
  return isBare ? { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port) } : undefined
}

/** Connects to a step. */
export function openDirectSocket(
  kind: DirectOptions['kind'],
  target: DirectTarget,
  key: string,
  onread: ReadInto,
): Socket {
  const options = { ...target, noDelay: true, onread }
  if (kind !== 'tls') return connect(options)
  const psk = Buffer.from(key)
  return connectTls({
    ...options,
    ...PRE_SHARED_KEY,
    pskCallback: () => ({ psk, identity: PSK_IDENTITY }),
    // There is no certificate: that the step knows the key is its identity.
    checkServerIdentity: () => undefined,
  })
}

/** Takes a connection. @param accepted - by a server with `pauseOnConnect`. */
export function acceptDirectSocket(
  kind: DirectOptions['kind'],
  accepted: Socket,
  key: string,
  onread: ReadInto,
): Socket {
  if (kind !== 'tls') return readingInto(accepted, onread)
  const psk = Buffer.from(key)
  accepted.setNoDelay(true)
  const options: TLSSocketOptions = {
    isServer: true,
    secureContext: createSecureContext(PRE_SHARED_KEY),
  }
  // As `createServer` of node:tls hands it on; the types know it there alone.
  Reflect.set(options, 'pskCallback', (_socket: Socket, identity: string) =>
    identity === PSK_IDENTITY ? psk : null,
  )
  return new TLSSocket(accepted, options)
}

/**
 * TLS 1.3 by a key that both ends have, with an exchange of fresh keys: no certificates, and what was recorded stays secret when the key
 * gets known. OpenSSL takes such keys with SHA-256 alone.
 */
const PRE_SHARED_KEY = {
  minVersion: 'TLSv1.3',
  ciphers: 'TLS_AES_128_GCM_SHA256',
} as const
const PSK_IDENTITY = 'tutti'
