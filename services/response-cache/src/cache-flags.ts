import {
  type Clock,
  type FlagTable,
  type FlagValues,
  flagRefusal,
  hostPort,
  type Logger,
} from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { ServerMetrics } from '@tutti/telemetry'
import { cacheFamilies } from './cache-families.ts'
import { LocalCache } from './local-cache.ts'
import { readRedisSettings } from './redis-settings.ts'
import type { ResponseCache } from './response-cache.ts'

const FLAG = '--cache-config'
const DEPRECATED = '--response-cache-byte-size'

/** The flags of the response cache, as in tritonserver. */
export const CACHE_FLAGS = {
  'cache-config': {
    type: 'string',
    repeatable: true,
    description:
      'Keep responses of models with response_cache: local,size=BYTES keeps so many bytes in this process; redis,host=HOST with redis,port=PORT keeps them in Redis.',
  },
  'response-cache-byte-size': {
    type: 'int',
    min: 0,
    unit: 'bytes',
    description: 'Deprecated form of --cache-config=local,size=BYTES. 0: no cache.',
  },
} as const satisfies FlagTable

export type CacheFlags = FlagValues<typeof CACHE_FLAGS>

export interface CacheDependencies {
  readonly clock: Clock
  readonly metrics: ServerMetrics
  readonly log: Logger
  /** Environment, in which user and password of Redis may be, as for Triton. */
  readonly env: Readonly<Record<string, string | undefined>> | undefined
  /** Stack that closes the cache. */
  readonly opened: AsyncDisposableStack
}

/**
 * Opens the response cache that the flags name, and adds its metrics to the server's.
 *
 * @returns undefined if the flags name none.
 * @throws ServeError FLAG_INVALID, also if Redis is there and refuses user, password or database.
 */
export async function openCache(
  flags: CacheFlags,
  o: CacheDependencies,
): Promise<ResponseCache | undefined> {
  const cache = await makeCache(flags, o)
  if (cache === undefined) return undefined
  o.metrics.addFamilies(() => cacheFamilies(cache))
  o.opened.defer(() => cache.close())
  return cache
}

async function makeCache(
  flags: CacheFlags,
  o: CacheDependencies,
): Promise<ResponseCache | undefined> {
  const { 'cache-config': configs, 'response-cache-byte-size': deprecated } = flags
  if (configs.length > 0 && deprecated !== undefined) {
    throw flagRefusal(FLAG, `came with ${DEPRECATED}, want one of them`)
  }
  if (configs.length === 0) {
    return deprecated ? new LocalCache({ maxBytes: deprecated, clock: o.clock }) : undefined
  }
  const { name, settings } = readConfigs(configs)
  if (name === 'local') return new LocalCache({ maxBytes: readSize(settings), clock: o.clock })
  const redis = readRedisSettings(settings, o.env ?? {})
  // Only those who want it load it.
  const { openRedisCache } = await import('./redis-cache.ts')
  try {
    return await openRedisCache(redis, o)
  } catch (cause) {
    const error = ServeError.from(cause)
    if (error.reason === 'FLAG_INVALID') throw error
    const { host, port } = redis
    throw flagRefusal(FLAG, `Redis at ${hostPort(host, port)} refuses: ${error.message}`, cause)
  }
}

function readSize(settings: ReadonlyMap<string, string>): number {
  for (const name of settings.keys()) {
    if (name !== 'size') throw flagRefusal(FLAG, `local has no setting "${name}", want size=BYTES`)
  }
  const size = settings.get('size')
  if (size === undefined) throw flagRefusal(FLAG, 'got no size, want local,size=BYTES')
  const bytes = /^\d{1,15}$/.test(size) ? Number(size) : 0
  if (bytes > 0) return bytes
  throw flagRefusal(FLAG, `got size=${size}, want bytes, from 1 to 999999999999999`)
}

/** Reads the one cache of all occurrences, with its settings. As in Triton each has one: a value may have commas. */
function readConfigs(configs: readonly string[]) {
  const settings = new Map<string, string>()
  const names = new Set(configs.map((text) => text.split(/[,=]/, 1)[0] ?? ''))
  const unknown = [...names].find((name) => name !== 'local' && name !== 'redis')
  if (unknown !== undefined) throw flagRefusal(FLAG, `got cache "${unknown}", want local or redis`)
  if (names.size > 1) throw flagRefusal(FLAG, 'got local and redis, want one of them')
  const [name = ''] = names
  for (const text of configs) {
    const [, setting, value = ''] = /^[^,]*,([^=]+)=(.*)$/s.exec(text) ?? []
    // The text that stands there instead may be part of a password.
    if (setting === undefined) throw flagRefusal(FLAG, `got no SETTING=VALUE after ${name},`)
    if (settings.has(setting)) throw flagRefusal(FLAG, `"${setting}" came twice, want it once`)
    settings.set(setting, value)
  }
  return { name, settings }
}
