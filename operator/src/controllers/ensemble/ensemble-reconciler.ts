import { type EnsembleSpec, type EnsembleStatus, modelNameOf } from '@tutti/api'
import { type AcceptedEnsemble, checkEnsemble, type EnsembleCheck } from '@tutti/graph'
import type { Stored } from '@tutti/kube'
import { ENSEMBLE, type EnsembleObject } from '../../api/kinds.ts'
import { urlsOf } from '../../resources/ensemble-routes.ts'
import { findCondition, toTime } from '../../runtime/conditions.ts'
import type { ReconcileContext, Result } from '../../runtime/controller.ts'
import { untilOwnerMoves } from '../../runtime/owner-check.ts'
import type { StatusWriter } from '../../runtime/status.ts'
import { acceptedOf, type Revision, toWanted } from '../accepted-revisions.ts'
import type { ControllerParts } from '../context.ts'
import { eventsOfChange, revisionAccepted } from '../events.ts'
import type { PodGroups } from '../model/pod-groups.ts'
import { readEnsemble } from '../read-ensemble.ts'
import { builtinsOf } from '../router/builtins-told.ts'
import { routerKeyOf, troubleOf } from '../router/router-trouble.ts'
import { servedNameOf } from '../served-names.ts'
import { type StoredRevisions, storeAccepted } from '../store-accepted.ts'
import { toStatusSignature } from '../to-signature.ts'
import { type EnsembleState, findUndone, type NewestRevision } from './ensemble-conditions.ts'
import { BAD_OF_ENSEMBLE, eventTextOf, hasWarning } from './events.ts'
import type { Exposure } from './exposure.ts'
import { NamespaceView } from './namespace-view.ts'
import { toStepStatuses } from './step-statuses.ts'
import { summarizeEnsemble } from './summarize.ts'

export interface EnsembleReconcilerOptions
  extends Pick<ControllerParts, 'client' | 'events' | 'clock' | 'caches' | 'views'> {
  readonly statuses: StatusWriter
  readonly exposure: Exposure
  /** Placement of Models in pods. */
  readonly groups: Pick<PodGroups, 'apartFrom'>
}

/** Time until the next look while routers have not taken an accepted revision, which they do within a moment. */
const SOON_MS = 300
const LATER_MS = 5000
/** Time after which an Ensemble is looked at less often. */
const PATIENCE_MS = 20_000
/** How old an answer of a router may be. */
const FRESH_MS = 200
const AGED_MS = 60_000
const BLOCKED_MS = 10_000
/** Problems of which nothing tells that they are over: other people's objects and policies. */
const UNTOLD: ReadonlySet<string> = new Set([
  'RouteConflict',
  'RouteRefused',
  'IssuerUnreadable',
  'IngressClassNotFound',
])

type Ensemble = Stored<EnsembleObject>

/**
 * Reconciles Ensembles. Each pass reads and checks one, stores the accepted revision, exposes it, asks the routers and writes a
 * status.
 */
export class EnsembleReconciler {
  readonly #options: EnsembleReconcilerOptions

  constructor(o: EnsembleReconcilerOptions) {
    this.#options = o
  }

  async reconcile(context: ReconcileContext, key: string): Promise<Result> {
    const { caches, statuses, exposure } = this.#options
    const object = caches.ensembles.get(key)
    if (object === undefined) {
      statuses.forget(key)
      exposure.forget(key)
      return {}
    }
    // The children of an Ensemble go with it, by owner references.
    if (object.metadata.deletionTimestamp !== undefined) return {}
    return await untilOwnerMoves(() => this.#look(object, context))
  }

  async #look(object: Ensemble, { signal, withoutSlot }: ReconcileContext): Promise<Result> {
    const { namespace = '' } = object.metadata
    const view = new NamespaceView(this.#options.caches, namespace)
    const { manifest } = readEnsemble(object)
    const spec = manifest?.spec
    const isPaused = spec?.paused === true
    const checked = check(object, view)
    const stored = await this.#accept(object, { view, checked, isPaused, signal })
    const { revisions, refusal } = stored
    const [newest] = revisions
    if (isNewToRouters(object, stored)) return { requeueAfterMs: SOON_MS }
    const { problem, route } = await this.#expose(object, isPaused ? undefined : spec, signal)
    const maxAgeMs = isSettled(object, newest) ? AGED_MS : FRESH_MS
    const router = this.#options.caches.routers.get(routerKeyOf(namespace))
    const state: EnsembleState = {
      generation: object.metadata.generation ?? 0,
      isPaused,
      checked,
      apart: this.#options.groups.apartFrom(object),
      served: newest && toServed(newest),
      refusal: refusal?.message,
      steps: spec === undefined ? [] : toStepStatuses(spec, view, builtinsOf(router)),
      exposure: problem,
      route,
      trouble: troubleOf(router),
      routers: await withoutSlot(() => this.#options.views.look(namespace, { maxAgeMs, signal })),
    }
    const status = await this.#write(object, { state, revisions, spec, signal })
    throwIfRefused(stored)
    return this.#again(status, state)
  }

  async #expose(object: Ensemble, spec: EnsembleSpec | undefined, signal: AbortSignal) {
    return spec === undefined ? {} : await this.#options.exposure.sync(object, spec, { signal })
  }

  /** Stores what is accepted, unless it is already what counts. */
  async #accept(
    object: Ensemble,
    o: {
      readonly view: NamespaceView
      readonly checked: EnsembleCheck
      readonly isPaused: boolean
      readonly signal: AbortSignal
    },
  ): Promise<StoredRevisions> {
    const { client, events } = this.#options
    const { view, checked, isPaused, signal } = o
    const accepted = checked.accepted && !isPaused ? [toAccepted(object, checked)] : []
    const wanted = accepted.map((one) => toWanted(one, { ignoresGeneration: false }))
    const stored = await storeAccepted({
      client,
      owner: { resource: ENSEMBLE, object },
      known: view.revisionsOf(object),
      orphans: view.orphansOf(object),
      wanted,
      // Beside the one that counts.
      findUnused: (all, history) => all.slice(1 + history),
      signal,
    })
    for (const { metadata } of stored.made) events.record(revisionAccepted(object, metadata.name))
    if (stored.made.length > 0 && checked.accepted) {
      for (const warning of checked.warnings) events.record(hasWarning(object, warning))
    }
    return stored
  }

  async #write(
    object: Ensemble,
    o: {
      readonly state: EnsembleState
      readonly revisions: readonly Revision[]
      readonly spec: EnsembleSpec | undefined
      readonly signal: AbortSignal
    },
  ): Promise<EnsembleStatus> {
    const { statuses, events, clock } = this.#options
    const [newest] = o.revisions
    const accepted = newest && acceptedOf(newest)
    const before = statuses.current(object)
    const status = summarizeEnsemble({
      state: o.state,
      modelName:
        o.spec === undefined
          ? servedNameOf(object)
          : modelNameOf({ metadata: object.metadata, spec: o.spec }),
      revisions: o.revisions.map(toServed),
      signature: accepted && toStatusSignature(accepted.config),
      urls: urlsOf(object.metadata.namespace ?? '', o.spec?.expose),
      before,
      at: toTime(clock.epochMs()),
    })
    const write = { resource: ENSEMBLE, object, status }
    const result = await statuses.write<EnsembleStatus>(write, o)
    if (result === 'written') {
      const change = { before, after: status, bad: BAD_OF_ENSEMBLE, textOf: eventTextOf }
      for (const event of eventsOfChange(object, change)) events.record(event)
    }
    return status
  }

  #again(
    status: EnsembleStatus,
    { served, routers, checked, exposure, route }: EnsembleState,
  ): Result {
    const isMissing =
      served !== undefined &&
      checked.accepted &&
      routers.some((one) => 'error' in one || findUndone(one.served, served, route) !== undefined)
    if (isMissing) {
      const isRecent = waitedMs(status, this.#options.clock.epochMs()) < PATIENCE_MS
      return { requeueAfterMs: isRecent ? SOON_MS : LATER_MS }
    }
    const isBlocked = exposure !== undefined && UNTOLD.has(exposure.reason)
    return isBlocked ? { requeueAfterMs: BLOCKED_MS } : {}
  }
}

/** Throws the refusal of revisions, after everything else is done. */
function throwIfRefused({ refusal, left }: StoredRevisions): void {
  const error = refusal ?? left
  if (error !== undefined) throw error
}

function check(object: Ensemble, view: NamespaceView): EnsembleCheck {
  const { manifest, problem } = readEnsemble(object)
  if (manifest !== undefined) return checkEnsemble(manifest, view.worldOf(object))
  return { accepted: false, reason: 'InvalidSpec', message: problem }
}

/** Returns the time since the Ensemble was accepted, or lost its routers: before that it may have been refused for long. */
function waitedMs({ conditions }: EnsembleStatus, nowMs: number): number {
  const waits = ['Accepted', 'Routable'].map((type) => {
    const known = findCondition(conditions, type)
    return known === undefined ? 0 : nowMs - Date.parse(known.lastTransitionTime)
  })
  return Math.min(...waits)
}

function isRoutable({ metadata, status }: Ensemble): boolean {
  const known = findCondition(status?.conditions, 'Routable')
  return known?.status === 'True' && known.observedGeneration === metadata.generation
}

/**
 * Tells whether routers may not know the accepted revision yet, because a step's Model changed, say. `Ready` stays until they had
 * a moment to hear of it.
 */
function isNewToRouters(object: Ensemble, { made, refusal }: StoredRevisions): boolean {
  return made.length > 0 && refusal === undefined && isRoutable(object)
}

/** True if no router is known to lack what counts. */
function isSettled(object: Ensemble, newest: Revision | undefined): boolean {
  if (newest === undefined) return true
  return isRoutable(object) && object.status?.revision === newest.metadata.name
}

function toAccepted(
  object: Ensemble,
  { config, graph, models, optionalOutputs }: Extract<EnsembleCheck, { readonly accepted: true }>,
): AcceptedEnsemble {
  const { name, uid, generation = 0 } = object.metadata
  return {
    kind: 'Ensemble',
    modelName: config.name,
    resource: { name, uid, generation },
    config,
    graph,
    models: { ...models },
    ...(optionalOutputs !== undefined && { optionalOutputs: { ...optionalOutputs } }),
  }
}

function toServed(revision: Revision): NewestRevision {
  const generation = acceptedOf(revision)?.resource.generation ?? 0
  return { name: revision.metadata.name, generation }
}
