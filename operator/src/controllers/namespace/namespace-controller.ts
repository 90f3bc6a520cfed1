import type { Clock, Logger } from '@tutti/chassis'
import {
  type Client,
  type ConfigMap,
  type Deployment,
  isNamespaceTerminating,
  type KubeObject,
  type Pod,
  type Secret,
  type Stored,
  toKeyString,
} from '@tutti/kube'
import { ENSEMBLE, type EnsembleObject, MODEL, type ModelObject } from '../../api/kinds.ts'
import { NATS_SECRETS } from '../../nats/nats-tenancy.ts'
import { buildRouterSet } from '../../resources/build-router-set.ts'
import type { RouterDefaults } from '../../resources/router-deployment.ts'
import { ROUTER_NAMES } from '../../resources/router-names.ts'
import { judgeRouterSettings, ROUTER_SETTINGS_LABEL } from '../../resources/router-settings.ts'
import { isOfRouter } from '../../resources/step-labels.ts'
import type { Cache } from '../../runtime/cache.ts'
import { FIELD_MANAGER } from '../../runtime/children.ts'
import {
  type Controller,
  createController,
  type ReconcileContext,
  type Result,
} from '../../runtime/controller.ts'
import type { EventRecorder } from '../../runtime/events.ts'
import type { RuntimeMetrics } from '../../runtime/metrics.ts'
import { referenceSource, type Source } from '../../runtime/sources.ts'
import { INDEX, namespacesOf, rivalOf } from '../caches.ts'
import { toFailureText } from '../pod-failure.ts'
import { findExposed } from './exposed-ensembles.ts'
import { routerRemoved } from './log-events.ts'
import { type MemberCache, RouterApplier } from './router-applier.ts'
import { failureOfRouter, findPodTrouble } from './router-pods.ts'
import type { RouterStates, RouterTrouble } from './router-states.ts'
import {
  isPassing,
  removeCredential,
  type Tenancy,
  toCredentialTrouble,
} from './tenant-credential.ts'

/** A kind that router sets have: what is there, and what changes. */
export interface RouterMemberKind {
  readonly cache: MemberCache
  readonly source: Source
}

/** @param cache - of objects with the labels of routers among others, with the index of namespaces. */
export function routerMemberKind<T extends KubeObject>(cache: Cache<T>): RouterMemberKind {
  const toKeys = (object: Stored<T>) => (isOfRouter(object) ? namespacesOf(object) : [])
  return { cache, source: referenceSource({ cache, toKeys }) }
}

export interface NamespaceControllerOptions {
  readonly client: Client
  readonly models: Cache<ModelObject>
  readonly ensembles: Cache<EnsembleObject>
  /** ConfigMaps with ROUTER_SETTINGS_LABEL. */
  readonly settings: Cache<ConfigMap>
  readonly secrets: Cache<Secret>
  /** Those of the operator, with the index of routers. */
  readonly pods: Cache<Pod>
  /** Those of the operator. */
  readonly deployments: Cache<Deployment>
  /** Every kind that router sets have. */
  readonly members: readonly RouterMemberKind[]
  readonly tenancy: Tenancy
  readonly defaults: RouterDefaults
  readonly states: RouterStates
  readonly events: Pick<EventRecorder, 'record'>
  readonly metrics: RuntimeMetrics
  readonly clock: Clock
  readonly log: Logger
  /** How often it is looked whether what only a person can set right is so; default 60 s. */
  readonly troublePollMs?: number
}

/**
 * Gives each namespace that has Models or Ensembles its router and its credential for the broker, and takes both away with the
 * last of them. Keys are names of namespaces.
 */
export function createNamespaceController(o: NamespaceControllerOptions): Controller {
  const reconciler = new NamespaceReconciler(o)
  return createController({
    name: 'namespace',
    sources: [
      // What is written in their status does not concern a router.
      referenceSource({ cache: o.models, toKeys: namespacesOf, predicate: isOtherGeneration }),
      referenceSource({ cache: o.ensembles, toKeys: namespacesOf, predicate: isOtherGeneration }),
      referenceSource({ cache: o.settings, toKeys: namespacesOf }),
      secretSource(o),
      ...o.members.map(({ source }) => source),
      routerPodSource(o),
    ],
    reconcile: (context, key) => reconciler.reconcile(context, key),
    clock: o.clock,
    log: o.log,
    metrics: o.metrics,
  })
}

/**
 * Tokens of Ensembles, and credentials: one that somebody changes or deletes is missed by the next pod, and cannot wait for its
 * renewal. One of ours that is left in a namespace that nobody uses is all that tells of a removal that was cut short.
 */
function secretSource({ secrets, models, ensembles }: NamespaceControllerOptions): Source {
  const isUsed = (namespace: string): boolean =>
    [models, ensembles].some((cache) => cache.byIndex(INDEX.namespace, namespace).length > 0)
  return referenceSource({
    cache: secrets,
    toKeys: (secret) => {
      const { metadata } = secret
      const isCredential = metadata.name === NATS_SECRETS.credentials
      const isToken = ensembles.byIndex(INDEX.token, toKeyString(metadata)).length > 0
      if (!isCredential && !isToken) return []
      const isLeft =
        isCredential && metadata.labels?.['app.kubernetes.io/managed-by'] === FIELD_MANAGER
      return namespacesOf(secret).filter((namespace) => isLeft || isUsed(namespace))
    },
  })
}

/** Pods that fail, or fail no more. How many are ready is told by the Deployment. */
function routerPodSource({ pods }: NamespaceControllerOptions): Source {
  return referenceSource({
    cache: pods,
    toKeys: (pod) => (isOfRouter(pod) ? namespacesOf(pod) : []),
    predicate: (now, before) => failureTextOf(now) !== failureTextOf(before),
  })
}

function failureTextOf(pod: Pod): string {
  const failure = failureOfRouter(pod)
  return failure === undefined ? '' : `${failure.reason} ${toFailureText(failure)}`
}

function isOtherGeneration(now: Stored<KubeObject>, before: Stored<KubeObject>): boolean {
  return (
    now.metadata.generation !== before.metadata.generation ||
    now.metadata.deletionTimestamp !== before.metadata.deletionTimestamp ||
    now.metadata.uid !== before.metadata.uid
  )
}

class NamespaceReconciler {
  readonly #o: NamespaceControllerOptions
  readonly #applier: RouterApplier
  /** Namespaces whose caches were as the server has it, at some time since this process began: they are never older again. */
  readonly #current = new Set<string>()

  constructor(o: NamespaceControllerOptions) {
    this.#o = o
    this.#applier = new RouterApplier({ ...o, caches: o.members.map(({ cache }) => cache) })
  }

  async reconcile({ signal, log }: ReconcileContext, namespace: string): Promise<Result> {
    const { models, ensembles, states, client } = this.#o
    // A process that has just started may have been given an old state: what was wanted then is wanted no more.
    if (!this.#current.has(namespace)) {
      if (!(await this.#isCurrent(namespace, signal))) return { requeueAfterMs: 1000 }
      this.#current.add(namespace)
    }
    const isUsed = [
      ...models.byIndex(INDEX.namespace, namespace),
      ...ensembles.byIndex(INDEX.namespace, namespace),
    ].some(({ metadata }) => metadata.deletionTimestamp === undefined)
    if (isUsed) return await this.#ensure(namespace, signal)
    // The cache may be behind; what is deleted for nothing is an outage.
    if (await this.#isUsedLive(namespace, signal)) return { requeueAfterMs: 1000 }
    states.set(namespace, undefined)
    this.#current.delete(namespace)
    await this.#applier.remove(namespace, { signal })
    await removeCredential(client, namespace, { signal })
    routerRemoved(log)
    return {}
  }

  /** Whether the caches have what the router of a namespace follows from as the server has it. */
  async #isCurrent(namespace: string, signal: AbortSignal): Promise<boolean> {
    const { client, models, ensembles, settings } = this.#o
    const labelSelector = `${ROUTER_SETTINGS_LABEL}=true`
    const isSame = async (
      cache: Cache<ModelObject> | Cache<EnsembleObject> | Cache<ConfigMap>,
      selection: { readonly labelSelector?: string } = {},
    ): Promise<boolean> => {
      const { items } = await client.list<KubeObject>(cache.resource, {
        ...selection,
        namespace,
        signal,
      })
      return versionsOf(items) === versionsOf(cache.byIndex(INDEX.namespace, namespace))
    }
    return (
      (await isSame(models)) && (await isSame(ensembles)) && isSame(settings, { labelSelector })
    )
  }

  async #isUsedLive(namespace: string, signal: AbortSignal): Promise<boolean> {
    for (const resource of [MODEL, ENSEMBLE]) {
      const { items } = await this.#o.client.list<KubeObject>(resource, { namespace, signal })
      if (items.some(({ metadata }) => metadata.deletionTimestamp === undefined)) return true
    }
    return false
  }

  async #ensure(namespace: string, signal: AbortSignal): Promise<Result> {
    const { tenancy, clock, states, settings, ensembles, client, defaults } = this.#o
    let renewAtMs: number
    try {
      ;({ renewAtMs } = await tenancy.ensureTenant(namespace, { signal }))
    } catch (error) {
      if (isNamespaceTerminating(error)) return {}
      const trouble = toCredentialTrouble(error, this.#hasCredential(namespace))
      if (trouble !== undefined) states.set(namespace, trouble)
      if (isPassing(error)) throw error
      // Somebody must set a Secret right that is not watched, or allow ours.
      return { requeueAfterMs: this.#pollMs }
    }
    const verdict = judgeRouterSettings(settings.byIndex(INDEX.namespace, namespace))
    if (!verdict.isValid) {
      // The router stays as it is: half of what was meant is not what was meant.
      this.#tell(
        namespace,
        { reason: 'RouterSettingsInvalid', message: verdict.problem },
        verdict.at,
      )
      return this.#again(renewAtMs)
    }
    const own = ensembles
      .byIndex(INDEX.namespace, namespace)
      // What clients call it leads to whoever has the name, who may want a token.
      .filter((one) => one.metadata.deletionTimestamp === undefined && !rivalOf(this.#o, one))
    const exposed = await findExposed(own, { client, signal })
    const parts = { namespace, defaults, settings: verdict.settings }
    const problem = await this.#applier.sync(namespace, buildRouterSet(parts, exposed), { signal })
    if (problem === undefined) {
      states.set(namespace, this.#podTroubleOf(namespace))
      return this.#again(renewAtMs)
    }
    this.#tell(namespace, problem)
    // Somebody else's object, or a policy: no watch tells that it is gone.
    return this.#again(Math.min(renewAtMs, clock.epochMs() + this.#pollMs))
  }

  #hasCredential(namespace: string): boolean {
    const { credentials: name } = NATS_SECRETS
    return this.#o.secrets.get(toKeyString({ namespace, name })) !== undefined
  }

  #podTroubleOf(namespace: string): RouterTrouble | undefined {
    const { deployments, pods } = this.#o
    const router = deployments.get(toKeyString({ namespace, name: ROUTER_NAMES.router }))
    return findPodTrouble(router, pods.byIndex(INDEX.router, namespace))
  }

  get #pollMs(): number {
    return this.#o.troublePollMs ?? 60_000
  }

  #again(atMs: number): Result {
    return { requeueAfterMs: Math.max(1000, atMs - this.#o.clock.epochMs()) }
  }

  #tell(namespace: string, trouble: RouterTrouble, at?: Stored<KubeObject>): void {
    const { states, events } = this.#o
    const before = states.get(namespace)
    const isNew = before?.reason !== trouble.reason || before.message !== trouble.message
    states.set(namespace, trouble)
    const { reason, message: note } = trouble
    if (isNew && at !== undefined) {
      const regarding = { ...at, apiVersion: 'v1', kind: 'ConfigMap' }
      events.record({ regarding, type: 'Warning', reason, action: 'Reconcile', note })
    }
  }
}

/** By which a change of what is wanted is seen; a ConfigMap has no generation. */
function versionsOf(objects: readonly Stored<KubeObject>[]): string {
  return objects
    .map(({ metadata: { uid, generation, resourceVersion, deletionTimestamp } }) =>
      [uid, generation ?? resourceVersion, deletionTimestamp ?? ''].join(' '),
    )
    .toSorted()
    .join()
}
