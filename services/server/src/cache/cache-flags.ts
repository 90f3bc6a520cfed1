import { type Clock, type FlagTable, type FlagValues, flagRefusal } from '@tutti/chassis'
import type { ServerMetrics } from '../metrics.ts'
import { cacheFamilies } from './cache-families.ts'
import { ResponseCache } from './response-cache.ts'

const FLAG = '--cache-config'
const DEPRECATED = '--response-cache-byte-size'

/** The response cache, as tritonserver configures it. */
export const CACHE_FLAGS = {
  'cache-config': {
    type: 'string',
    repeatable: true,
    description:
      'Keep responses of models with response_cache: local,size=BYTES keeps so many bytes in this process.',
  },
  'response-cache-byte-size': {
    type: 'int',
    min: 0,
    unit: 'bytes',
    description: 'Deprecated form of --cache-config=local,size=BYTES. 0: no cache.',
  },
} as const satisfies FlagTable

export type CacheFlags = FlagValues<typeof CACHE_FLAGS>

/**
 * Opens the response cache that the flags ask for. Its metrics are printed with the server's.
 *
 * @returns undefined if they ask for none.
 * @throws ServeError FLAG_INVALID
 */
export function openCache(
  flags: CacheFlags,
  o: {
    readonly clock: Clock
    readonly metrics: ServerMetrics
    /** Closes it. */
    readonly opened: AsyncDisposableStack
  },
): ResponseCache | undefined {
  const maxBytes = readMaxBytes(flags)
  if (maxBytes === undefined) return undefined
  const cache = new ResponseCache({ maxBytes, clock: o.clock })
  o.metrics.addFamilies(() => cacheFamilies(cache))
  o.opened.defer(() => cache.close())
  return cache
}

function readMaxBytes(flags: CacheFlags): number | undefined {
  const { 'cache-config': configs, 'response-cache-byte-size': deprecated } = flags
  if (configs.length === 0) return deprecated === 0 ? undefined : deprecated
  if (deprecated !== undefined) throw flagRefusal(FLAG, `came with ${DEPRECATED}, want one of them`)
  const settings = readSettings(configs)
  const size = settings.get('size')
  if (size === undefined) throw flagRefusal(FLAG, 'got no size, want local,size=BYTES')
  const bytes = /^\d{1,15}$/.test(size) ? Number(size) : 0
  if (bytes > 0) return bytes
  throw flagRefusal(FLAG, `got size=${size}, want bytes, from 1 to 999999999999999`)
}

function readSettings(configs: readonly string[]): ReadonlyMap<string, string> {
  const settings = new Map<string, string>()
  for (const text of configs) {
    const [name, ...pairs] = text.split(',')
    if (name !== 'local') throw flagRefusal(FLAG, `got cache "${name}", want local`)
    for (const pair of pairs) {
      const [, setting = '', value = ''] = /^([^=]+)=(.*)$/s.exec(pair) ?? []
      if (setting !== 'size') throw flagRefusal(FLAG, `got "${pair}", want size=BYTES`)
      if (settings.has(setting)) throw flagRefusal(FLAG, `"${setting}" came twice, want it once`)
      settings.set(setting, value)
    }
  }
  return settings
}
