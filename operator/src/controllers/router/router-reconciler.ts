import { RouterSpec, type RouterStatus } from '@tutti/api'
import { ServeError } from '@tutti/errors'
import {
  type Event,
  isNamespaceTerminating,
  keyOf,
  type OwnerReference,
  type Stored,
  toKeyString,
} from '@tutti/kube'
import { type EnsembleObject, ROUTER, type RouterObject } from '../../api/kinds.ts'
import { LatePods, toLatePodsDelayMs } from '../../pods/late-pods.ts'
import {
  buildClientPolicy,
  buildExposure,
  buildRouterSet,
} from '../../resources/build-router-set.ts'
import { planReplicas } from '../../resources/model-scaling.ts'
import {
  type RouterDefaults,
  type RouterFacts,
  scalingOfRouter,
} from '../../resources/router-deployment.ts'
import type { ExposedEnsembles } from '../../resources/router-edge.ts'
import { ROUTER_NAMES } from '../../resources/router-names.ts'
import { BUILTINS_NAME } from '../../resources/step-labels.ts'
import type { Applier } from '../../runtime/apply.ts'
import { toOwnerReference } from '../../runtime/children.ts'
import { toTime } from '../../runtime/conditions.ts'
import type { ReconcileContext, Result } from '../../runtime/controller.ts'
import { toDeletion } from '../../runtime/deletion.ts'
import { untilOwnerMoves } from '../../runtime/owner-check.ts'
import type { StatusWriter } from '../../runtime/status.ts'
import { INDEX, namespaceOfKey, rivalOf } from '../caches.ts'
import { findChildProblem } from '../child-problem.ts'
import type { ControllerParts } from '../context.ts'
import type { DeploymentRecord } from '../kept-objects.ts'
import { findLeftOutTolerance } from '../left-out-tolerance.ts'
import { parseSpec } from '../read-spec.ts'
import { ReplicasGuard, toWriterText } from '../replicas-guard.ts'
import type { BuiltinsSet } from './builtins-set.ts'
import { eventsOfRouter } from './events.ts'
import { findExposed } from './exposed-ensembles.ts'
import { ISSUER_AGED_MS, IssuerKeys } from './issuer-keys.ts'
import { readRouter } from './read-router.ts'
import {
  AGAIN,
  isKept,
  RouterNeed,
  type RouterNeedOptions,
  TROUBLE_POLL_MS,
} from './router-need.ts'
import { findPodTrouble } from './router-pods.ts'
import { summarizeRouter } from './router-status.ts'
import { type RouterTrouble, routerKeyOf } from './router-trouble.ts'
import { isPassing, type Tenancy, toCredentialTrouble } from './tenant-credential.ts'
import { isUntouched } from './untouched.ts'

export interface RouterControllerOptions extends ControllerParts, RouterNeedOptions {
  readonly tenancy: Tenancy
  readonly defaults: RouterDefaults
  readonly builtins: BuiltinsSet
}

export interface RouterReconcilerOptions extends RouterControllerOptions {
  readonly applier: Applier
  readonly statuses: StatusWriter
}

type Router = Stored<RouterObject>

/** The findings of a look at a Router. */
interface Found {
  readonly trouble: RouterTrouble | undefined
  /** Trouble with the objects around built-ins. */
  readonly builtins?: RouterTrouble | undefined
  /** Time of the next look, in milliseconds since the epoch. */
  readonly againAtMs: number
  /** An error that is worth another try once the status says it. */
  readonly error?: Error
}

interface PlannedReplicas {
  /** Replicas to write; undefined if another client has them. */
  readonly replicas: number | undefined
  readonly writer?: RouterTrouble
}

/** The result of applying the children of a Router. */
type MadeSet = Pick<Found, 'trouble' | 'builtins'> & Partial<Pick<Found, 'againAtMs'>>

const REASONS = { conflict: 'RouterConflict', refused: 'RouterRefused' }
const SERVICES = [ROUTER_NAMES.grpcService, ROUTER_NAMES.httpService]
/** How old an answer of a pod may be; RouterViews asks that often, and tells of changes. */
const AGED_MS = 10_000

/**
 * Reconciles Routers. It creates one where it is needed, applies its children and credential, asks its pods and writes one
 * status.
 */
export class RouterReconciler {
  readonly #options: RouterReconcilerOptions
  readonly #need: RouterNeed
  readonly #troublePollMs: number
  readonly #issuer: IssuerKeys
  readonly #guard: ReplicasGuard
  readonly #latePods: LatePods

  constructor(o: RouterReconcilerOptions) {
    this.#options = o
    this.#troublePollMs = o.troublePollMs ?? TROUBLE_POLL_MS
    this.#need = new RouterNeed(o)
    this.#issuer = new IssuerKeys(o)
    this.#guard = new ReplicasGuard(o)
    this.#latePods = new LatePods(o)
  }

  async reconcile(context: ReconcileContext, key: string): Promise<Result> {
    const { caches, applier, statuses, builtins } = this.#options
    const { signal } = context
    const namespace = namespaceOfKey(key)
    const router = caches.routers.get(key)
    const isUsed = this.#need.isUsed(namespace)
    if (router === undefined && !isUsed) {
      for (const one of [applier, statuses, this.#guard, builtins]) one.forget(key)
      this.#need.forget(namespace)
      return {}
    }
    if (!(await this.#need.isCurrent(namespace, signal))) return AGAIN
    if (router === undefined) return await this.#need.create(namespace, signal)
    if (!isUsed && !isKept(router)) return await this.#endAccess(router, signal)
    if (!isUsed && isUntouched(router)) {
      // Its pods serve until the garbage collector of the API server has come to them.
      await this.#endAccess(router, signal)
      return await this.#need.delete(router, signal)
    }
    return await untilOwnerMoves(() => this.#look(router, context))
  }

  /**
   * Ends access from outside. All that belongs to the Router goes with it, and another is made once it is gone. Until then its
   * pods serve, but no Ensemble is exposed.
   */
  async #endAccess(router: Router, signal: AbortSignal): Promise<Result> {
    return await untilOwnerMoves(async () => {
      await this.#applyAccess(router, signal)
      return {}
    })
  }

  async #look(router: Router, context: ReconcileContext): Promise<Result> {
    const { signal, withoutSlot } = context
    const { namespace = '', generation = 0 } = router.metadata
    const { statuses, events, views, clock, caches } = this.#options
    const { services, pods } = caches
    const found = await this.#ensure(router, context)
    if (found === undefined) return {}
    const before = statuses.current(router)
    const state = {
      generation,
      trouble: found.trouble,
      ...this.#replicasOf(router),
      deployment: this.#deploymentIn(namespace),
      hasServices: SERVICES.every((name) => services.get(toKeyString({ namespace, name }))),
      pods: pods.byIndex(INDEX.router, namespace),
      builtins: await this.#builtinsOf(router, found, signal),
      views: await withoutSlot(() => views.look(namespace, { maxAgeMs: AGED_MS, signal })),
    }
    const at = toTime(clock.epochMs())
    const status = summarizeRouter(state, { before: before?.conditions, at })
    const write = { resource: ROUTER, object: router, status }
    if ((await statuses.write<RouterStatus>(write, { signal })) === 'written') {
      for (const event of eventsOfRouter(router, before, status)) events.record(event)
    }
    if (found.error !== undefined) throw found.error
    return { requeueAfterMs: Math.max(1000, found.againAtMs - clock.epochMs()) }
  }

  async #builtinsOf(router: Router, { builtins: trouble }: Found, signal: AbortSignal) {
    const { builtins, defaults } = this.#options
    const late = builtins.podsIn(router.metadata.namespace ?? '')
    const events = await this.#latePods.eventsOf(late, { signal })
    const { spec } = readRouter(router, defaults)
    return builtins.stateOf(router, { spec, trouble, events })
  }

  #replicasOf(router: Router): { readonly replicas?: number } {
    const { defaults } = this.#options
    const { spec } = readRouter(router, defaults)
    if (spec === undefined) return {}
    const live = this.#deploymentIn(router.metadata.namespace ?? '')?.spec.replicas
    const replicas = planReplicas(scalingOfRouter({ spec, defaults }), { live })
    return replicas === undefined ? {} : { replicas }
  }

  /** @returns undefined if the namespace is being deleted. */
  async #ensure(router: Router, context: ReconcileContext): Promise<Found | undefined> {
    const { signal } = context
    const soonMs = this.#options.clock.epochMs() + this.#troublePollMs
    const exposed = await this.#applyAccess(router, signal)
    const credential = await this.#ensureCredential(router, { soonMs, signal })
    if (credential === undefined || credential.trouble !== undefined) return credential
    // An issuer may get other keys, of which no watch tells.
    const refreshMs = exposed.usesIssuer === true ? ISSUER_AGED_MS : Number.POSITIVE_INFINITY
    const renewAtMs = Math.min(credential.againAtMs, this.#options.clock.epochMs() + refreshMs)
    const made: MadeSet = isKept(router)
      ? await this.#makeSet(router, { exposed, context })
      : { trouble: deletionOf(router) }
    const { trouble, builtins } = made
    // Somebody else's object, or a policy: no watch tells that it is gone.
    if (trouble !== undefined) return { trouble, builtins, againAtMs: Math.min(renewAtMs, soonMs) }
    const builtinsAtMs = builtins === undefined ? made.againAtMs : soonMs
    const pods = this.#podsOf(router)
    const events = await this.#latePods.eventsOf(pods, { signal })
    const nowMs = this.#options.clock.epochMs()
    const all = [...pods, ...this.#options.builtins.podsIn(router.metadata.namespace ?? '')]
    const lateMs = toLatePodsDelayMs(all, nowMs) ?? Number.POSITIVE_INFINITY
    const againAtMs = Math.min(renewAtMs, builtinsAtMs ?? renewAtMs, nowMs + lateMs)
    return { trouble: this.#podTroubleOf(router, events), builtins, againAtMs }
  }

  /**
   * Applies who may reach the routers, before anything else of a Router can fail: a revoked token ends whatever else is wrong.
   * The pods of a Router that is being deleted serve until nothing holds it.
   *
   * @returns the Ensembles that are reached from outside.
   */
  async #applyAccess(router: Router, signal: AbortSignal): Promise<ExposedEnsembles> {
    const { client, defaults, applier } = this.#options
    const { namespace = '' } = router.metadata
    const issuer = this.#issuer
    const exposed = await findExposed(this.#exposable(namespace), { client, issuer, signal })
    // An image that is not allowed changes nothing here.
    const { spec } = parseSpec(RouterSpec, router.spec)
    const children = [
      buildExposure(namespace, exposed),
      ...(spec === undefined ? [] : buildClientPolicy({ namespace, defaults, spec })),
    ]
    const owner = { resource: ROUTER, object: router }
    const result = await applier.apply(owner, children, { signal })
    // Throws what is worth another try. What is refused stays refused, and the whole set tells of it.
    findChildProblem(result, REASONS)
    return exposed
  }

  /** Pods go on while a Router that is being deleted is held, so their credential is renewed then too. */
  async #ensureCredential(
    router: Router,
    { soonMs, signal }: { readonly soonMs: number; readonly signal: AbortSignal },
  ): Promise<Found | undefined> {
    const { namespace = '' } = router.metadata
    try {
      const owners = this.#ownersOfCredential(router)
      const { renewAtMs } = await this.#options.tenancy.ensureTenant(namespace, { owners, signal })
      return { trouble: undefined, againAtMs: renewAtMs }
    } catch (error) {
      if (isNamespaceTerminating(error)) return undefined
      const trouble = toCredentialTrouble(error, this.#hasCredential(namespace))
      // For any other error it is not known what is wrong: the status stays as it is.
      if (trouble === undefined) throw error
      if (isPassing(error)) return { trouble, againAtMs: soonMs, error: toError(error) }
      // Somebody must set a Secret right that is not watched, or allow ours.
      return { trouble, againAtMs: soonMs }
    }
  }

  /** Makes the router's objects. A spec that cannot be read changes nothing, because half of it may mean something else. */
  async #makeSet(
    router: Router,
    {
      exposed,
      context,
    }: { readonly exposed: ExposedEnsembles; readonly context: ReconcileContext },
  ): Promise<MadeSet> {
    const { signal } = context
    const { defaults, applier, builtins } = this.#options
    const { namespace = '' } = router.metadata
    const { spec, problem: invalid } = readRouter(router, defaults)
    if (invalid !== undefined) {
      return { trouble: { reason: 'RouterSettingsInvalid', message: `spec.${invalid}` } }
    }
    const facts = { namespace, defaults, spec }
    const { replicas, writer } = await this.#planReplicas(facts, signal)
    const planned = await builtins.plan(router, spec, context)
    const children = [...buildRouterSet({ ...facts, replicas }, exposed), ...planned.children]
    const owner = { resource: ROUTER, object: router }
    const { outcomes } = await applier.sync(owner, children, { signal })
    // Those of built-ins have a condition of their own: Ensembles without them are served all the same.
    const own = outcomes.filter(({ key }) => key.name !== BUILTINS_NAME)
    const problem = findChildProblem({ outcomes: own }, REASONS)
    const leftOut = findLeftOutTolerance(spec.scaling?.behavior, own)
    const lacks = leftOut === undefined ? leftOut : { reason: 'FieldLeftOut', message: leftOut }
    return {
      trouble: problem ?? writer ?? lacks,
      builtins: builtins.problemOf(outcomes) ?? planned.writer,
      againAtMs: planned.againAtMs,
    }
  }

  /** Plans the replicas to write; none where an HPA or another client has them. */
  async #planReplicas(facts: RouterFacts, signal: AbortSignal): Promise<PlannedReplicas> {
    const key = routerKeyOf(facts.namespace)
    const deployment = this.#deploymentIn(facts.namespace)
    const live = deployment?.spec.replicas
    const planned = planReplicas(scalingOfRouter(facts), { live })
    const writer = await this.#guard.find({ key, deployment, planned, signal })
    if (writer === undefined || deployment === undefined) return { replicas: planned }
    const text = toWriterText(writer, deployment)
    const message = `${text}; to let it decide, want scaling.replicas of the Router "default" set and the Router as its target; else delete it`
    return { replicas: undefined, writer: { reason: 'ReplicasNotOwned', message } }
  }

  /**
   * Lists the Ensembles to expose. A name that clients call leads to the one that has it, which may want a token: a rival is left
   * out.
   */
  #exposable(namespace: string): readonly Stored<EnsembleObject>[] {
    return this.#options.caches.ensembles
      .inNamespace(namespace)
      .filter((one) => isKept(one) && rivalOf(this.#options.caches, one) === undefined)
  }

  /** Lists the Router and what it was made for: the credential stays while a Router that was deleted is made again. */
  #ownersOfCredential(router: Router): readonly OwnerReference[] {
    const oldest = this.#need.oldest(router.metadata.namespace ?? '')
    const owner = isKept(router) ? { resource: ROUTER, object: router } : undefined
    return [owner, oldest].flatMap((one) => {
      if (one === undefined) return []
      const { blockOwnerDeletion: _, controller: __, ...reference } = toOwnerReference(one)
      return [one === owner ? { ...reference, controller: true } : reference]
    })
  }

  #hasCredential(namespace: string): boolean {
    const key = toKeyString({ namespace, name: this.#options.defaults.nats.secret })
    return this.#options.caches.secrets.get(key) !== undefined
  }

  #podTroubleOf(router: Router, events: readonly Event[]): RouterTrouble | undefined {
    const deployment = this.#deploymentIn(router.metadata.namespace ?? '')
    return findPodTrouble(deployment, this.#podsOf(router), events)
  }

  #podsOf({ metadata: { namespace = '' } }: Router) {
    return this.#options.caches.pods.byIndex(INDEX.router, namespace)
  }

  #deploymentIn(namespace: string): Stored<DeploymentRecord> | undefined {
    const { deployments } = this.#options.caches
    return deployments.get(toKeyString({ namespace, name: ROUTER_NAMES.router }))
  }
}

/** Finds why a Router that is being deleted is still there. */
function deletionOf(router: Router): RouterTrouble | undefined {
  const { finalizers = [] } = router.metadata
  const deletion = toDeletion({ resource: ROUTER, key: keyOf(router), finalizers })
  return deletion && { reason: 'Terminating', ...deletion }
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : ServeError.from(error)
}
