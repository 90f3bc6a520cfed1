import { type Clock, raceSignal } from '@tutti/chassis'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { CacheObserver } from '@tutti/telemetry'
import {
  type Executed,
  type InferRequest,
  NO_TIMES,
  type ResponseSink,
  type StepResponse,
  type StepTimes,
} from '@tutti/tensor'
import { cacheKey, cacheKeyByTurns, isKeyedByTurns } from './cache-key.ts'
import type { CachedResponse, ResponseCache } from './response-cache.ts'

/** A request that a cache may answer. */
export interface CachedCall {
  readonly cache: ResponseCache
  /** Identity of the loaded model or ensemble: another one for each model, version and load. */
  readonly identity: string
  readonly request: InferRequest
  /** Names of all outputs of the model, which a request that names none asks for. */
  readonly outputs: readonly string[]
  readonly sink: ResponseSink
  readonly observer: CacheObserver | undefined
  readonly clock: Pick<Clock, 'now'>
  /** Signal of the call; an abort ends the wait for a shared cache, and the request goes to `execute`. */
  readonly signal: CancelSignal
  /** Function that executes the request. An error that it throws goes to the sink. */
  readonly execute: (sink: ResponseSink) => void
  /** Function that returns false for a response that others must not get; absent: every response may be kept. */
  readonly mayKeep?: () => boolean
}

/**
 * Answers a request from the cache, or executes it and keeps the response. It keeps neither errors nor the responses of a request
 * that has several. Never throws.
 *
 * @returns undefined if all is done at once; for a shared cache or a large request, a promise that resolves once the request is
 * answered or given to `execute`.
 */
export function executeCached(call: CachedCall): Promise<void> | undefined {
  const startedAt = call.clock.now()
  if (isKeyedByTurns(call.request)) return executeLarge(call, startedAt)
  return answerOrExecute(call, cacheKey(call), startedAt)
}

/** Executes a large request. Its tensors stay unchanged until it is passed on, whatever its caller does meanwhile. */
async function executeLarge(call: CachedCall, startedAt: number): Promise<void> {
  const giveBack = call.request.retain?.()
  try {
    const key = await cacheKeyByTurns(call, call.signal)
    if (key === undefined) call.execute(call.sink)
    else await answerOrExecute(call, key, startedAt)
  } catch (error) {
    call.sink.fail(ServeError.from(error), 'no')
  } finally {
    giveBack?.()
  }
}

function answerOrExecute(
  call: CachedCall,
  key: string,
  startedAt: number,
): Promise<void> | undefined {
  const found = call.cache.lookup(key)
  const proceed = (response: CachedResponse | undefined): void => {
    const lookupNs = sinceNs(call, startedAt)
    if (response === undefined) return miss(call, key, lookupNs)
    call.observer?.hit({ requestNs: lookupNs, lookupNs })
    call.sink.send({ ...response, index: 0, final: true, times: NO_TIMES })
  }
  if (found instanceof Promise) {
    // It rejects only if the signal aborts.
    return raceSignal(found, call.signal)
      .catch(() => undefined)
      .then(proceed)
  }
  proceed(found)
  return undefined
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
    const { cache, observer, mayKeep } = this.#call
    const startedAt = this.#call.clock.now()
    if (mayKeep?.() !== false) cache.insert(this.#key, { outputs, parameters })
    observer?.missed(this.#lookupNs + sinceNs(this.#call, startedAt))
  }
}

function sinceNs({ clock }: Pick<CachedCall, 'clock'>, startedAt: number): number {
  return (clock.now() - startedAt) * 1e6
}
