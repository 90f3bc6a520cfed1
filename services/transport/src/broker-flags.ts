import { readFileSync } from 'node:fs'
import type { FlagTable, FlagValues } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { peerSubjects, type SubjectNames } from '@tutti/protocol'
import type { BrokerOptions } from './peers.ts'

/** The flags of every executable that talks over a broker. Secrets come from files, never from the command line. */
export const BROKER_FLAGS = {
  nats: {
    type: 'string',
    repeatable: true,
    description:
      'A NATS server, nats://HOST:PORT or tls://HOST:PORT; several of one cluster may be given.',
  },
  'nats-prefix': {
    type: 'string',
    default: 'tutti',
    description: 'First part of every subject, so that installations share a broker.',
  },
  'repository-name': {
    type: 'string',
    default: 'default',
    description: 'Steps and routers of one name find each other; tenants have different ones.',
  },
  'nats-user': { type: 'string', description: 'User name; the password is in a file.' },
  'nats-password-file': { type: 'string', description: 'File with the password of the user.' },
  'nats-token-file': { type: 'string', description: 'File with an authentication token.' },
  'nats-nkey-file': { type: 'string', description: 'File with the seed of an nkey.' },
  'nats-creds-file': {
    type: 'string',
    description: 'Credentials file (JWT and seed); read again at every connect.',
  },
  'nats-tls-ca': { type: 'string', description: 'PEM file of the authorities that are trusted.' },
  'nats-tls-cert': { type: 'string', description: 'PEM file of the own certificate, for mTLS.' },
  'nats-tls-key': { type: 'string', description: 'PEM file of its key.' },
} as const satisfies FlagTable

export type BrokerFlags = FlagValues<typeof BROKER_FLAGS>

const SCHEMES = new Set(['nats:', 'tls:'])
const WAYS = ['nats-user', 'nats-token-file', 'nats-nkey-file', 'nats-creds-file'] as const

/**
 * Reads the flags as options. Secrets are read from their files at each connect, so that they may be rotated; here they are
 * only tried.
 *
 * @throws ServeError FLAG_INVALID that names the flag, what came and what was wanted.
 */
export function toBrokerOptions(flags: BrokerFlags): BrokerOptions {
  checkWays(flags)
  const user = flags['nats-user']
  const passwordFile = flags['nats-password-file']
  const tokenFile = flags['nats-token-file']
  const nkeyFile = flags['nats-nkey-file']
  const credentialsFile = flags['nats-creds-file']
  const tls = toTls(flags)
  return {
    servers: toServers(flags.nats),
    ...toNames(flags),
    ...(user !== undefined && { user }),
    ...(passwordFile !== undefined && { password: secretFrom('nats-password-file', passwordFile) }),
    ...(tokenFile !== undefined && { token: secretFrom('nats-token-file', tokenFile) }),
    ...(nkeyFile !== undefined && { nkeyFile: readable('nats-nkey-file', nkeyFile) }),
    ...(credentialsFile !== undefined && {
      credentialsFile: readable('nats-creds-file', credentialsFile),
    }),
    ...(tls !== undefined && { tls }),
  }
}

function toServers(servers: readonly string[]): readonly string[] {
  if (servers.length === 0) throw refusal('nats', 'got none, want at least one nats://HOST:PORT')
  for (const server of servers) {
    const url = URL.canParse(server) ? new URL(server) : undefined
    const isWhole = url !== undefined && SCHEMES.has(url.protocol) && url.hostname !== ''
    if (!isWhole || url.pathname + url.search + url.hash !== '') {
      throw refusal('nats', `"${withoutSecret(server)}", want nats://HOST:PORT or tls://HOST:PORT`)
    }
    if (url.username !== '' || url.password !== '') {
      throw refusal(
        'nats',
        `"${withoutSecret(server)}" holds credentials, want them in --nats-user, --nats-password-file or another file`,
      )
    }
  }
  return servers
}

/** What stands before an `@` may be a secret. */
function withoutSecret(server: string): string {
  return server.replace(/^([a-z]*:\/\/)?.*@/, '$1[redacted]@')
}

/** One way to authenticate; two would leave it to chance which one counts. */
function checkWays(flags: BrokerFlags): void {
  const given = WAYS.filter((name) => flags[name] !== undefined)
  const [first, second] = given
  if (second !== undefined) {
    throw refusal(second, `got it beside --${first}, want one way to authenticate`)
  }
  const hasUser = flags['nats-user'] !== undefined
  if (hasUser !== (flags['nats-password-file'] !== undefined)) {
    throw hasUser
      ? refusal('nats-user', 'got it alone, want --nats-password-file too')
      : refusal('nats-password-file', 'got it alone, want --nats-user too')
  }
}

function toTls(flags: BrokerFlags): BrokerOptions['tls'] {
  const caFile = flags['nats-tls-ca']
  const certFile = flags['nats-tls-cert']
  const keyFile = flags['nats-tls-key']
  if ((certFile === undefined) !== (keyFile === undefined)) {
    const name = certFile === undefined ? 'nats-tls-key' : 'nats-tls-cert'
    throw refusal(name, 'got it alone, want --nats-tls-cert and --nats-tls-key')
  }
  if (caFile === undefined && certFile === undefined) return undefined
  return {
    ...(caFile !== undefined && { caFile: readable('nats-tls-ca', caFile) }),
    ...(certFile !== undefined && { certFile: readable('nats-tls-cert', certFile) }),
    ...(keyFile !== undefined && { keyFile: readable('nats-tls-key', keyFile) }),
  }
}

/** As subjects will have them, so that what no subject can hold is refused before a model is loaded. */
function toNames(flags: BrokerFlags): SubjectNames {
  const names = { prefix: flags['nats-prefix'], repository: flags['repository-name'] }
  try {
    peerSubjects(names)
    return names
  } catch (cause) {
    const { details, message } = ServeError.from(cause)
    const flag = details.field === 'prefix' ? 'nats-prefix' : 'repository-name'
    throw refusal(flag, message, cause)
  }
}

function secretFrom(name: keyof BrokerFlags, path: string): () => string {
  const read = (): string => readSecret(name, path)
  read()
  return read
}

/** The last line end is the editor's. */
function readSecret(name: keyof BrokerFlags, path: string): string {
  const secret = readText(name, path).replace(/\r?\n$/, '')
  if (secret === '') throw refusal(name, `${path} is empty`)
  return secret
}

function readable(name: keyof BrokerFlags, path: string): string {
  readText(name, path)
  return path
}

function readText(name: keyof BrokerFlags, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    const { message } = ServeError.from(cause)
    throw refusal(name, `cannot be read: ${message}`, cause)
  }
}

function refusal(name: keyof BrokerFlags, what: string, cause?: unknown): ServeError {
  return new ServeError('FLAG_INVALID', `--${name}: ${what}`, {
    details: { field: `--${name}` },
    cause,
  })
}
