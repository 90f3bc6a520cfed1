import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { flagRefusal, SecretText } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'

/** The certificates and the key of connections over TLS, in PEM. */
export interface RedisTls {
  /** Certificates of authorities; absent: those that Node trusts. */
  readonly ca?: readonly string[]
  readonly cert?: string
  readonly key?: string
  /** Name that the server's certificate must have; absent: the host. */
  readonly servername?: string
}

/** The settings of the connection to Redis. */
export interface RedisSettings {
  readonly host: string
  readonly port: number
  readonly user: string | undefined
  readonly password: SecretText | undefined
  readonly db: number
  readonly connectMs: number
  /** Time for one lookup; after it the request is executed. */
  readonly lookupMs: number
  /** True if `pool_size` is set. It has no effect: one connection takes many lookups at a time. */
  readonly hasPoolSize: boolean
  /** Function that reads the files of TLS, for each connection anew; undefined without TLS. @throws ServeError FLAG_INVALID */
  readonly readTls: (() => RedisTls) | undefined
}

type Settings = ReadonlyMap<string, string>

const FLAG = '--cache-config'
/** Most time of a lookup: Triton waits as long for a connection of its pool. */
const LOOKUP_MS = 1000
const CONNECT_MS = 5000
const MOST = 2 ** 31 - 1

const TLS_SETTINGS = ['cert', 'key', 'cacert', 'cacert_dir', 'sni']
const OTHER_SETTINGS =
  'host port user password db connect_timeout socket_timeout pool_size wait_timeout tls_enabled'
/** The settings of Triton's cache in Redis. */
const SETTINGS = [...OTHER_SETTINGS.split(' '), ...TLS_SETTINGS]

/**
 * Reads the settings as Triton's cache in Redis takes them. User and password come from the environment where no setting gives
 * them. The errors repeat no value: it may be a password.
 *
 * @throws ServeError FLAG_INVALID
 */
export function readRedisSettings(
  settings: Settings,
  env: Readonly<Record<string, string | undefined>>,
): RedisSettings {
  const unknown = [...settings.keys()].find((name) => !SETTINGS.includes(name))
  if (unknown !== undefined) {
    throw refused(`redis has no setting "${unknown}", want ${SETTINGS.join(', ')}`)
  }
  const waitMs = readNumber(settings, 'wait_timeout')
  const socketMs = readNumber(settings, 'socket_timeout')
  const password = settings.get('password') ?? env['TRITONCACHE_REDIS_PASSWORD']
  return {
    host: readHost(settings),
    port: readNumber(settings, 'port', { from: 1, to: 65_535 }),
    user: settings.get('user') ?? env['TRITONCACHE_REDIS_USERNAME'],
    password: password === undefined ? undefined : new SecretText(password),
    db: readNumber(settings, 'db'),
    connectMs: readNumber(settings, 'connect_timeout') || CONNECT_MS,
    lookupMs: Math.min(waitMs || socketMs || LOOKUP_MS, socketMs || MOST),
    hasPoolSize: readNumber(settings, 'pool_size', { from: 1 }) > 0,
    readTls: findTls(settings),
  }
}

function readHost(settings: Settings): string {
  const host = settings.get('host') ?? ''
  const isHost = /^[^\s/,@]+$/.test(host)
  if (isHost && settings.has('port')) return host
  const came = host === '' || isHost ? 'got no address' : 'redis,host is no name and no address'
  throw refused(`${came}, want redis,host=HOST and redis,port=PORT, each in a flag of its own`)
}

/** Reads a number; 0 if it is not set. */
function readNumber(settings: Settings, name: string, { from = 0, to = MOST } = {}): number {
  const text = settings.get(name)
  if (text === undefined) return 0
  const value = /^\d{1,10}$/.test(text) ? Number(text) : -1
  if (value >= from && value <= to) return value
  throw refused(`redis,${name} is no whole number from ${from} to ${to}`)
}

function findTls(settings: Settings): (() => RedisTls) | undefined {
  const enabled = settings.get('tls_enabled')
  if (enabled === undefined) {
    const useless = TLS_SETTINGS.find((name) => settings.has(name))
    if (useless === undefined) return undefined
    throw refused(`redis,${useless} came without redis,tls_enabled=true`)
  }
  if (enabled !== 'true' && enabled !== 'false') {
    throw refused('redis,tls_enabled is neither true nor false')
  }
  if (settings.has('cert') !== settings.has('key')) {
    throw refused('redis,cert and redis,key come together')
  }
  return enabled === 'true' ? () => readTls(settings) : undefined
}

function readTls(settings: Settings): RedisTls {
  const read = <T>(name: string, reader: (path: string) => T): T | undefined => {
    const path = settings.get(name)
    try {
      return path === undefined ? undefined : reader(path)
    } catch (cause) {
      const { message } = ServeError.from(cause)
      throw refused(`redis,${name}: "${path}" cannot be read: ${message}`, cause)
    }
  }
  const [cert, key, file] = ['cert', 'key', 'cacert'].map((name) => read(name, readText))
  const folder = read('cacert_dir', (path) =>
    readdirSync(path, { withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .map(({ name }) => readText(join(path, name))),
  )
  const ca = [...(file === undefined ? [] : [file]), ...(folder ?? [])]
  const servername = settings.get('sni')
  return {
    ...(ca.length > 0 && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(servername !== undefined && { servername }),
  }
}

function readText(path: string): string {
  return readFileSync(path, 'utf8')
}

function refused(problem: string, cause?: unknown): ServeError {
  return flagRefusal(FLAG, problem, cause)
}
