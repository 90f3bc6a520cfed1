import { createHash } from 'node:crypto'
import type { Clock } from '@tutti/chassis'
import type { EnsemblePlan } from '@tutti/graph'
import { printModelConfig } from '@tutti/model-config'
import { executeCached, type ResponseCache } from '@tutti/response-cache'
import type { CacheObserver } from '@tutti/telemetry'
import type { RequestContext } from '@tutti/tensor'
import type { AnswerFromCache, CachedEnsembleCall } from '../calls/request-dependencies.ts'
import { type ResolvedEntry, resolveSteps } from '../catalog/catalog.ts'

/** Creates the cache of ensembles whose configuration enables it. Requests of sequences are always executed. */
export function createEnsembleCache(
  cache: ResponseCache,
  o: {
    readonly cacheObserverOf: (ensemble: ResolvedEntry) => CacheObserver | undefined
    readonly clock: Clock
  },
): AnswerFromCache {
  const identities = new WeakMap<ResolvedEntry, string>()
  return ({ target, request, owner, context, requestedOutputs }, sink, begin) => {
    const isCached = target.config.response_cache?.enable === true
    if (!isCached || isOfSequence(request.context)) return begin(sink)
    const identity = identities.get(target) ?? identify(target, cache)
    identities.set(target, identity)
    void executeCached({
      cache,
      identity,
      request: { ...request, requestedOutputs },
      outputs: target.outputs,
      sink,
      observer: o.cacheObserverOf(target),
      clock: o.clock,
      signal: context.signal,
      execute: begin,
      mayKeep: () => !hasMoved(target, owner.pins),
    })
  }
}

function isOfSequence({ correlationId, sequenceStart, sequenceEnd }: RequestContext): boolean {
  return sequenceStart || sequenceEnd || (correlationId !== 0n && correlationId !== '')
}

/** Numbers the plans of this process: an ensemble that is loaded anew, or whose models were, has another. */
const PLANS = new WeakMap<EnsemblePlan, number>()
let plansMade = 0

/**
 * Identifies the ensemble: the identity changes if the ensemble or any model under it changes. @throws ServeError if a step's
 * model cannot be found.
 */
function identify(target: ResolvedEntry, cache: Pick<ResponseCache, 'isShared'>): string {
  const { plan, pinnedKey } = target
  if (plan === undefined) return pinnedKey
  const steps = stepsOf(target, plan).map((step) => identify(step, cache))
  const load = cache.isShared ? '' : String(numberOf(plan))
  const parts = [pinnedKey, printModelConfig(plan.config), plan.graph, load, ...steps]
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}

function numberOf(plan: EnsemblePlan): number {
  const known = PLANS.get(plan)
  if (known !== undefined) return known
  plansMade += 1
  PLANS.set(plan, plansMade)
  return plansMade
}

function stepsOf(target: ResolvedEntry, plan: EnsemblePlan): readonly ResolvedEntry[] {
  return target.steps ?? resolveSteps(target, plan)
}

/** Tells whether another revision executed a step than the one under which the ensemble's answers are kept. */
function hasMoved(target: ResolvedEntry, pins: CachedEnsembleCall['owner']['pins']): boolean {
  const { plan, pinned } = target
  if (plan === undefined) return pins.pinOf(target).target.revision !== pinned.revision
  return stepsOf(target, plan).some((step) => hasMoved(step, pins))
}
