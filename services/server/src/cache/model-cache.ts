import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  type Executed,
  type InferRequest,
  NO_TIMES,
  type ResponseSink,
  type StepResponse,
  type StepTimes,
} from '@tutti/tensor'
import { cacheKey } from './cache-key.ts'
import type { CacheStatistics } from './cache-statistics.ts'
import type { ResponseCache } from './response-cache.ts'

/** A request that a cache may answer. */
export interface CachedCall {
  readonly cache: ResponseCache
  /** Names the loaded model or ensemble: each model, version and load has another identity. */
  readonly identity: string
  readonly request: InferRequest
  /** Names of all outputs: those of a request that names none. */
  readonly outputs: readonly string[]
  readonly sink: ResponseSink
  readonly statistics: CacheStatistics | undefined
  readonly clock: Pick<Clock, 'now'>
  /** Executes the request; what it throws the sink gets. */
  readonly execute: (sink: ResponseSink) => void
  /** False for a response that others must not get; always true if absent. */
  readonly mayKeep?: () => boolean
}

/**
 * Answers a request from the cache, or executes it and keeps the response. Errors are not kept, and nothing of several
 * responses. Never throws.
 */
export function executeCached(call: CachedCall): void {
  const startedAt = call.clock.now()
  const key = cacheKey(call)
  const response = call.cache.lookup(key)
  const lookupNs = sinceNs(call, startedAt)
  if (response === undefined) return miss(call, key, lookupNs)
  call.statistics?.recordHit({ requestNs: lookupNs, lookupNs })
  call.sink.send({ ...response, index: 0, final: true, times: NO_TIMES })
}

function miss(call: CachedCall, key: string, lookupNs: number): void {
  try {
    call.execute(new KeepingSink(call, key, lookupNs))
  } catch (error) {
    call.sink.fail(ServeError.from(error), 'no')
  }
}

/** Passes responses on, and keeps the one of a request that has only one. */
class KeepingSink implements ResponseSink {
  readonly #call: CachedCall
  readonly #key: string
  readonly #lookupNs: number

  constructor(call: CachedCall, key: string, lookupNs: number) {
    this.#call = call
    this.#key = key
    this.#lookupNs = lookupNs
  }

  send(response: StepResponse): void {
    if (response.final && response.index === 0) this.#keep(response)
    this.#call.sink.send(response)
  }

  fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    this.#call.sink.fail(error, executed, times)
  }

  ready(): Promise<void> | undefined {
    return this.#call.sink.ready?.()
  }

  #keep({ outputs, parameters }: StepResponse): void {
    const { cache, statistics, mayKeep } = this.#call
    const startedAt = this.#call.clock.now()
    if (mayKeep?.() !== false) cache.insert(this.#key, { outputs, parameters })
    statistics?.recordMiss(this.#lookupNs + sinceNs(this.#call, startedAt))
  }
}

function sinceNs({ clock }: Pick<CachedCall, 'clock'>, startedAt: number): number {
  return (clock.now() - startedAt) * 1e6
}
