import { isAbsolute, join, resolve } from 'node:path'
import type { FlagTable, FlagValues } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { buildSubjects, type SubjectNames } from '@tutti/protocol'
import { SOCKET_NAME_BYTES } from './direct/direct-listener.ts'
import type { DirectOptions, HostPort } from './direct/direct-sockets.ts'
import type { BrokerOptions } from './endpoints.ts'
import { readBrokerFile } from './nats/broker-files.ts'
import type { BrokerField, BrokerNaming } from './nats/broker-naming.ts'
import { checkBrokerOptions } from './nats/broker-options.ts'

const DIRECT_KINDS = ['off', 'unix', 'tls', 'tcp'] as const

/** The flags of every executable that talks over a broker. Secrets come from files, never from the command line. */
export const BROKER_FLAGS = {
  nats: {
    type: 'string',
    repeatable: true,
    description:
      'Address of a NATS server, nats://HOST:PORT or tls://HOST:PORT. Repeat the flag for more servers of the cluster.',
  },
  'nats-prefix': {
    type: 'string',
    default: 'tutti',
    description:
      'First part of every subject. Installations with different prefixes can share a broker.',
  },
  'repository-name': {
    type: 'string',
    default: 'default',
    description: 'Name of the repository. Steps and routers of one name find each other.',
  },
  'nats-user': {
    type: 'string',
    description: 'User name. The password is in --nats-password-file.',
  },
  'nats-password-file': {
    type: 'string',
    path: 'file',
    description: 'File with the password of the user.',
  },
  'nats-token-file': {
    type: 'string',
    path: 'file',
    description: 'File with an authentication token.',
  },
  'nats-nkey-file': { type: 'string', path: 'file', description: 'File with the seed of an nkey.' },
  'nats-creds-file': {
    type: 'string',
    path: 'file',
    description: 'Credentials file (JWT and seed). It is read again at every connect.',
  },
  'nats-tls-ca': {
    type: 'string',
    path: 'file',
    description: 'PEM file of the trusted authorities.',
  },
  'nats-tls-cert': {
    type: 'string',
    path: 'file',
    description: 'PEM file of the client certificate, for mTLS.',
  },
  'nats-tls-key': { type: 'string', path: 'file', description: 'PEM file of its key.' },
  direct: {
    type: 'enum',
    values: DIRECT_KINDS,
    default: 'off',
    description:
      'What requests and tensors travel over between a router and a step that both have the same: tls, tcp (not encrypted), or unix (a socket of the host). Where it cannot be used, and with off, NATS carries everything.',
  },
  'direct-directory': {
    type: 'string',
    path: 'folder',
    description:
      'With --direct unix: the directory of the sockets, an absolute path. It is made if it is not there, and only its user may enter it.',
  },
} as const satisfies FlagTable

/** The flags of executables that take direct connections. */
export const DIRECT_LISTENER_FLAGS = {
  'direct-address': {
    type: 'string',
    description:
      'With --direct tls or tcp: HOST:PORT where routers reach this process. It listens there; port 0 is a free one.',
  },
} as const satisfies FlagTable

export type BrokerFlags = FlagValues<typeof BROKER_FLAGS> &
  Partial<FlagValues<typeof DIRECT_LISTENER_FLAGS>>

const FLAG_OF: Readonly<Record<BrokerField, keyof BrokerFlags>> = {
  servers: 'nats',
  user: 'nats-user',
  password: 'nats-password-file',
  token: 'nats-token-file',
  nkeyFile: 'nats-nkey-file',
  credentialsFile: 'nats-creds-file',
  'tls.caFile': 'nats-tls-ca',
  'tls.certFile': 'nats-tls-cert',
  'tls.keyFile': 'nats-tls-key',
}

const MAX_PORT = 65_535
/** Bytes of `sun_path` (unix(7)), less its final zero. */
const MAX_SOCKET_PATH_BYTES = 107

const FLAG_NAMES: BrokerNaming = {
  name: (field) => `--${FLAG_OF[field]}`,
  refusal: (field, what, cause) => refusal(FLAG_OF[field], what, cause),
}

/**
 * Makes options of the flags. Secrets are read from their files at each connect, so that they may be rotated; here they are
 * only tried.
 *
 * @throws ServeError FLAG_INVALID that names the flag, what came and what was wanted.
 */
export function readBrokerFlags(flags: BrokerFlags): {
  readonly broker: BrokerOptions
  readonly direct: DirectOptions | undefined
} {
  return { broker: toBroker(flags), direct: toDirect(flags) }
}

/** Reads the direct transport. A flag that has no effect beside the others is refused. */
function toDirect(flags: BrokerFlags): DirectOptions | undefined {
  const { direct: kind, 'direct-directory': directory, 'direct-address': address } = flags
  const isTcp = kind === 'tls' || kind === 'tcp'
  if (directory !== undefined && kind !== 'unix') {
    throw refusal('direct-directory', `got it with --direct ${kind}, want --direct unix`)
  }
  if (address !== undefined && !isTcp) {
    throw refusal('direct-address', `got it with --direct ${kind}, want --direct tls or tcp`)
  }
  if (kind === 'unix') return { kind, directory: toDirectory(directory) }
  if (!isTcp) return undefined
  // Executables that take no connections do not have the flag.
  if (!('direct-address' in flags)) return { kind }
  return { kind, listen: toHostPort(address, kind) }
}

function toDirectory(directory: string | undefined): string {
  if (directory === undefined || !isAbsolute(directory)) {
    const got = directory === undefined ? 'got none' : `got "${directory}"`
    throw refusal('direct-directory', `${got}, want an absolute path for --direct unix`)
  }
  const path = resolve(directory)
  const size = Buffer.byteLength(join(path, '/')) + SOCKET_NAME_BYTES
  if (size <= MAX_SOCKET_PATH_BYTES) return path
  const most = MAX_SOCKET_PATH_BYTES - SOCKET_NAME_BYTES - 1
  throw refusal(
    'direct-directory',
    `got a path of ${Buffer.byteLength(path)} bytes, want at most ${most}`,
  )
}

function toHostPort(address: string | undefined, kind: string): HostPort {
  const [, host = '', port = ''] =
    /^(\[[0-9a-fA-F:.]+\]|[^:/\s]+):(\d{1,5})$/.exec(address ?? '') ?? []
  if (host !== '' && Number(port) <= MAX_PORT) {
    return { host: host.replace(/^\[(.*)\]$/, '$1'), port: Number(port) }
  }
  const got = address === undefined ? 'got none' : `got "${address}"`
  throw refusal('direct-address', `${got}, want HOST:PORT for --direct ${kind}`)
}

function toBroker(flags: BrokerFlags): BrokerOptions {
  const user = flags['nats-user']
  const password = toSecret('password', flags['nats-password-file'])
  const token = toSecret('token', flags['nats-token-file'])
  const nkeyFile = flags['nats-nkey-file']
  const credentialsFile = flags['nats-creds-file']
  const tls = toTls(flags)
  const options = {
    servers: flags.nats,
    ...toNames(flags),
    ...(user !== undefined && { user }),
    ...(password !== undefined && { password }),
    ...(token !== undefined && { token }),
    ...(nkeyFile !== undefined && { nkeyFile }),
    ...(credentialsFile !== undefined && { credentialsFile }),
    ...(tls !== undefined && { tls }),
  }
  checkBrokerOptions(options, FLAG_NAMES)
  password?.()
  token?.()
  return options
}

function toTls(flags: BrokerFlags): BrokerOptions['tls'] {
  const caFile = flags['nats-tls-ca']
  const certFile = flags['nats-tls-cert']
  const keyFile = flags['nats-tls-key']
  if (caFile === undefined && certFile === undefined && keyFile === undefined) return undefined
  return {
    ...(caFile !== undefined && { caFile }),
    ...(certFile !== undefined && { certFile }),
    ...(keyFile !== undefined && { keyFile }),
  }
}

/** Reads the names that subjects contain. A name that no subject can hold is refused here, before a model is loaded. */
function toNames(flags: BrokerFlags): SubjectNames {
  const names = { prefix: flags['nats-prefix'], repository: flags['repository-name'] }
  try {
    buildSubjects(names)
    return names
  } catch (cause) {
    const { details, message } = ServeError.from(cause)
    const flag = details.field === 'prefix' ? 'nats-prefix' : 'repository-name'
    throw refusal(flag, message, cause)
  }
}

/** Makes the function that reads the text of the file, without its last line end. */
function toSecret(field: BrokerField, path: string | undefined): (() => string) | undefined {
  if (path === undefined) return undefined
  return () => {
    const secret = readBrokerFile(field, path, FLAG_NAMES).replace(/\r?\n$/, '')
    if (secret === '') throw FLAG_NAMES.refusal(field, `"${path}" is empty`)
    return secret
  }
}

function refusal(name: keyof BrokerFlags, what: string, cause?: unknown): ServeError {
  return new ServeError('FLAG_INVALID', `--${name}: ${what}`, {
    details: { field: `--${name}` },
    cause,
  })
}
