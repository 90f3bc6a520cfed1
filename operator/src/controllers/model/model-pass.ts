import type { ModelStatus } from '@tutti/api'
import { CONTROLLER_REVISION, DEPLOYMENT, type Event, keyOf, type Stored } from '@tutti/kube'
import { MODEL, type ModelObject } from '../../api/kinds.ts'
import type { LatePods } from '../../pods/late-pods.ts'
import {
  buildGroupChildren,
  buildGuestChildren,
  buildHeadless,
} from '../../resources/build-model-children.ts'
import type { ModelFacts } from '../../resources/model-facts.ts'
import { maySleep } from '../../resources/model-scaling.ts'
import type { PodGroup } from '../../resources/pod-group.ts'
import { stepSelector } from '../../resources/step-labels.ts'
import {
  type Applier,
  type ChildId,
  type ChildOutcome,
  type SyncResult,
  throwIfFailed,
} from '../../runtime/apply.ts'
import type { Owner } from '../../runtime/children.ts'
import { findCondition } from '../../runtime/conditions.ts'
import type { ReconcileContext, Result } from '../../runtime/controller.ts'
import type { StatusWriter } from '../../runtime/status.ts'
import type { ControllerParts } from '../context.ts'
import { templateOf } from '../deployment-state.ts'
import { eventsOfChange, revisionAccepted } from '../events.ts'
import type { DeploymentRecord } from '../kept-objects.ts'
import { type OwnScaler, type PlannedReplicas, planOwnReplicas } from '../plan-own-replicas.ts'
import type { ReplicasGuard } from '../replicas-guard.ts'
import { routerKeyOf, troubleOf } from '../router/router-trouble.ts'
import { servedNameOf } from '../served-names.ts'
import { type StoredRevisions, storeAccepted } from '../store-accepted.ts'
import type { CheckedModel, Refusal } from './check-model.ts'
import { findClaimRefusal } from './claim-refusal.ts'
import { type DesiredModel, toDesiredModel } from './desired-model.ts'
import { BAD_OF_MODEL, childRepaired, replicasChanged } from './events.ts'
import { explainFull, replacesFirst } from './full-nodes.ts'
import { markSleep } from './mark-sleep.ts'
import type { ModelMetrics } from './metrics.ts'
import { isVerified } from './model-conditions.ts'
import { findFailure } from './model-failure.ts'
import type { ModelPod } from './model-pods.ts'
import type { ModelReader } from './model-reader.ts'
import { asBefore, isLeftAsWas, isOfHost, type ModelWorld } from './model-world.ts'
import { isWaitingForGate, toNextLook } from './next-look.ts'
import { openGates } from './open-gates.ts'
import { findUnused, planWanted, versionsOf } from './plan-revisions.ts'
import { type Host, isEnsemble, type PodGroups, titleOf } from './pod-groups.ts'
import type { PodObserver } from './pod-observer.ts'
import { readModelSpec } from './read-model-spec.ts'
import { summarize } from './summarize.ts'

export interface ModelPassOptions
  extends Pick<ControllerParts, 'client' | 'events' | 'clock' | 'caches' | 'views'> {
  readonly reader: ModelReader
  readonly applier: Applier
  readonly statuses: StatusWriter
  readonly observer: PodObserver
  readonly latePods: LatePods
  /** Scaler that gives the replicas for the provider Native. */
  readonly scaler: OwnScaler
  /** Starts the first pod of a host that sleeps. */
  readonly wake: (host: Host) => void
  readonly guard: ReplicasGuard
  readonly groups: PodGroups
  readonly counts: ModelMetrics
}

/** How old an answer of a router may be while a pod waits for it. */
const FRESH_MS = 200
/** Most age of views while no pod waits: RouterViews asks often enough. */
const AGED_MS = 60_000

/** The Model of one pass, with its key. */
export interface PassInput extends Pick<ReconcileContext, 'signal' | 'withoutSlot'> {
  readonly model: Stored<ModelObject>
  readonly key: string
}

/**
 * One pass over one Model. It checks the spec, applies the children, asks the pods, accepts what they serve, asks the routers and
 * writes one status.
 */
export class ModelPass {
  readonly #options: ModelPassOptions
  readonly #input: PassInput
  readonly #owner: Owner
  readonly #before: ModelStatus

  constructor(o: ModelPassOptions, input: PassInput) {
    this.#options = o
    this.#input = input
    this.#owner = { resource: MODEL, object: input.model }
    this.#before = o.statuses.current<ModelStatus>(input.model) ?? {}
  }

  /**
   * Runs the pass.
   *
   * @returns when to look at the Model again.
   * @throws the error of a failed child or revision after the status is written; OwnerMoved if the Model is gone or edited.
   */
  async run(): Promise<Result> {
    const { model, signal } = this.#input
    const { client, clock, groups, counts: metrics } = this.#options
    const checked = groups.check(model, await this.#findClaimRefusal())
    const desired = checked.spec && toDesiredModel(model, groups)
    const facts = await this.#look(checked, desired, await this.#sync(checked, desired))
    const stored = await this.#store(facts)
    const world = await this.#askRouters(facts, stored)
    await openGates(world, { client, clock, metrics, signal })
    await this.#tell(world)
    await markSleep(world, { client, newest: stored.revisions[0], signal })
    throwIfFailed(world)
    if (stored.left !== undefined) throw stored.left
    return { requeueAfterMs: toNextLook(world, clock.epochMs()) }
  }

  /** Looks at the Deployment and the pods. */
  async #look(
    checked: CheckedModel,
    desired: DesiredModel | undefined,
    synced: Synced | undefined,
  ): Promise<Facts> {
    const { model } = this.#input
    const host = desired?.host ?? model
    const deployment = findDeployment(synced) ?? this.#options.reader.deploymentOf(host)
    const { scaling, resources, template } = desired ?? {}
    // Where nothing is changed for a Model, the pods that there are, are of the newest template that there is.
    const isKept = synced === undefined || desired?.held !== undefined
    const newest = isKept ? deployment && templateOf(deployment) : template
    return {
      ...checked,
      model,
      modelName: servedNameOf(model),
      before: this.#before,
      scaling,
      resources,
      hold: desired && holdOf(model, desired),
      host: toHost(host, model, desired),
      rollout: desired?.group.spec.rollout,
      apart: this.#options.groups.placementOf(model).apart,
      template,
      deployment,
      ...toSynced(synced),
      pods: await this.#observe(newest),
    }
  }

  /** Finds why the Model's claims cannot be used. The server is asked only for a Model that has some. @throws KubeError */
  #findClaimRefusal(): Promise<Refusal | undefined> {
    const { model, signal } = this.#input
    const { namespace = '' } = model.metadata
    const claims = readModelSpec(model).spec?.accelerator?.claims
    return findClaimRefusal(this.#options.client, { namespace, claims, signal })
  }

  async #sync(
    { refusal }: CheckedModel,
    desired: DesiredModel | undefined,
  ): Promise<Synced | undefined> {
    if (refusal !== undefined || desired === undefined) return undefined
    this.#wakeEdited(desired)
    if (desired.isGuest) return await this.#syncGuest(desired)
    if (desired.held !== undefined) return undefined
    const { applier, reader, events, groups, scaler, guard } = this.#options
    const { model, key, signal } = this.#input
    const live = reader.deploymentOf(model)?.spec.replicas
    const { group, scaling, podTemplate } = desired
    const { replicas, replicasWriter } = await planOwnReplicas({
      key,
      scaling,
      scaler,
      guard,
      signal,
      uid: model.metadata.uid,
      deployment: reader.deploymentOf(model),
    })
    const services = factsOf(model, group).map(buildHeadless)
    const children = buildGroupChildren(group, {
      scaling,
      replicas,
      replacesFirst: replacesFirst({
        rollout: group.spec.rollout,
        deployment: reader.deploymentOf(model),
        template: desired.template,
        pods: reader.podsOf(model),
      }),
      podTemplate,
      services,
    })
    const synced = await applier.sync(this.#owner, children, {
      signal,
      onRepaired: (child) => events.record(childRepaired(model, child)),
    })
    groups.keepProblems(model, synced.outcomes)
    const now = findDeployment(synced)?.spec.replicas
    if (live !== undefined && now !== undefined && replicas !== undefined && live !== now) {
      events.record(replicasChanged(model, live, now))
    }
    return { ...synced, replicasWriter }
  }

  /**
   * Starts a pod for an edit of a Model that sleeps: an edit is tried once, and not only when a request comes. One that could not be
   * tried at first, as something was refused or paused, is tried later.
   */
  #wakeEdited({ scaling, host, held }: DesiredModel): void {
    const { reader, wake, guard } = this.#options
    const { model } = this.#input
    const isTried = asBefore({ before: this.#before, model }, 'SchemaVerified') !== undefined
    const isAsleep = maySleep(scaling) && reader.deploymentOf(host)?.spec.replicas === 0
    if (isTried || !isAsleep || (held ?? refusalOf(host)) !== undefined) return
    // A decision leads to a pass: one that another client undoes is not taken again.
    if (!guard.isLeft(`${host.metadata.namespace}/${host.metadata.name}`)) wake(host)
  }

  /** Applies the objects of a Model that runs in the pods of another. Its own pods stay until those serve it. */
  async #syncGuest({ group, host }: DesiredModel): Promise<Synced> {
    const { applier, scaler, groups, events } = this.#options
    const { model, key, signal } = this.#input
    scaler.forget(key)
    const children = factsOf(model, group).flatMap(buildGuestChildren)
    const onRepaired = (child: ChildId): void => events.record(childRepaired(model, child))
    const { outcomes } = groups.isLeft(model)
      ? await applier.sync(this.#owner, children, { signal, onRepaired })
      : await applier.apply(this.#owner, children, { signal, onRepaired })
    return { outcomes: [...outcomes, ...groups.problemsOf(host)], replicasWriter: undefined }
  }

  /** Asks the pods. What runs in them is not trusted to answer: no other namespace waits for it. */
  #observe(template: string | undefined): Promise<readonly ModelPod[]> {
    const { observer, reader } = this.#options
    const { model, signal, withoutSlot } = this.#input
    const o = { modelName: servedNameOf(model), template, signal }
    return withoutSlot(() => observer.observe(reader.podsOf(model), o))
  }

  /** Accepts what pods serve, if it is what the Model declares. */
  async #store(facts: Facts): Promise<StoredRevisions> {
    const { spec, refusal, modelName, pods } = facts
    const { client, reader, events, counts } = this.#options
    const { model, signal } = this.#input
    const { name, uid, generation = 0 } = model.metadata
    const isOfSpec = refusal === undefined && !isLeftAsWas(facts)
    const wanted = planWanted({
      owner: { name, uid, generation },
      modelName,
      spec: spec ?? {},
      pods,
      isVerified: (pod) => isOfSpec && spec !== undefined && isVerified(spec, pod) === true,
    })
    const stored = await storeAccepted({
      client,
      owner: this.#owner,
      known: reader.revisionsOf(model),
      orphans: reader.orphansOf(model),
      wanted,
      findUnused: (all, history) => findUnused(pods, all, history),
      signal,
    })
    for (const { metadata } of stored.made) {
      counts.accepted.add({})
      events.record(revisionAccepted(model, metadata.name))
    }
    return stored
  }

  async #askRouters(facts: Facts, { revisions, refusal }: StoredRevisions): Promise<ModelWorld> {
    const { model, signal, withoutSlot } = this.#input
    const { views, caches } = this.#options
    const { namespace = '' } = model.metadata
    const maxAgeMs = this.#isWaiting(facts) ? FRESH_MS : AGED_MS
    const events = await this.#eventsOf(facts.pods)
    return {
      ...facts,
      outcomes: [...facts.outcomes, ...toOutcomes(model, refusal)],
      accepted: revisions.flatMap(versionsOf),
      routers: await withoutSlot(() => views.look(namespace, { maxAgeMs, signal })),
      failure: explainFull(findFailure(facts.pods, facts.deployment, { ...facts, events }), {
        ...facts,
        pods: facts.pods.flatMap(({ pod }) => (isOfHost(pod, facts.host) ? [pod] : [])),
      }),
      trouble: troubleOf(caches.routers.get(routerKeyOf(namespace))),
    }
  }

  /** Reads the events of pods that are late, those of the newest template first. */
  #eventsOf(pods: readonly ModelPod[]): Promise<readonly Event[]> {
    const { signal, withoutSlot } = this.#input
    const inTurn = pods.toSorted((one, other) => Number(other.isCurrent) - Number(one.isCurrent))
    const late = inTurn.map(({ pod }) => pod)
    return withoutSlot(() => this.#options.latePods.eventsOf(late, { signal }))
  }

  /** True if the routers' answer may change something now. */
  #isWaiting({ pods }: Pick<ModelWorld, 'pods'>): boolean {
    const ready = findCondition(this.#before.conditions, 'Ready')
    const { generation } = this.#input.model.metadata
    if (ready?.status !== 'True' || ready.observedGeneration !== generation) return true
    return pods.some(({ pod }) => isWaitingForGate(pod, this.#input.model.metadata.name))
  }

  async #tell(world: ModelWorld): Promise<void> {
    const { statuses, events, clock } = this.#options
    const { model: object, signal } = this.#input
    const status = summarize(world, clock.epochMs())
    const write = { resource: MODEL, object, status }
    if ((await statuses.write<ModelStatus>(write, { signal })) !== 'written') return
    const change = { before: this.#before, after: status, bad: BAD_OF_MODEL, textOf: reasonOf }
    for (const event of eventsOfChange(object, change)) events.record(event)
  }
}

function toSynced(synced: Synced | undefined): Pick<Facts, 'outcomes' | 'replicasWriter'> {
  return { outcomes: synced?.outcomes ?? [], replicasWriter: synced?.replicasWriter }
}

/** Returns the facts of a Model in its pods. */
function factsOf({ metadata }: Stored<ModelObject>, { models }: PodGroup): readonly ModelFacts[] {
  return models.filter(({ name }) => name === metadata.name)
}

function toHost(
  host: Host,
  model: Stored<ModelObject>,
  desired: DesiredModel | undefined,
): ModelWorld['host'] {
  const selector = desired?.group.selector ?? stepSelector(model.metadata.name)
  return { title: titleOf(host), isItself: host === model, labels: selector }
}

/** Finds what else holds the pods of a Model as they are; undefined if at most the Model itself does. */
function holdOf(
  { metadata }: Stored<ModelObject>,
  { host, held }: DesiredModel,
): ModelWorld['hold'] {
  const found = held ?? refusalOf(host)
  if (found === undefined || found.uid === metadata.uid) return undefined
  const { reason, message } = found
  return {
    reason,
    message: `${found.title}, ${found.uid === host.metadata.uid ? 'in whose pods it runs' : 'which runs in the same pods'}: ${message}`,
  }
}

/** Reads a refusal from the status of a Model: other passes do not know all that its own found out. */
function refusalOf(host: Host): DesiredModel['held'] {
  // An Ensemble is accepted once its Models are there.
  const accepted = isEnsemble(host) ? undefined : findCondition(host.status?.conditions, 'Accepted')
  if (accepted?.status !== 'False') return undefined
  const { reason, message } = accepted
  return { uid: host.metadata.uid, title: titleOf(host), reason, message }
}

/** Tells that a revision cannot be stored as if a child could not be made. */
function toOutcomes(model: Stored<ModelObject>, error: unknown): readonly ChildOutcome[] {
  if (error === undefined) return []
  return [{ resource: CONTROLLER_REVISION, key: keyOf(model), result: 'failed', error }]
}

type Synced = SyncResult & Pick<PlannedReplicas, 'replicasWriter'>

/** Messages name pods, which come and go. */
function reasonOf({ reason }: { readonly reason: string }): string {
  return reason
}

/** The facts that are known before anything is accepted, and routers are asked. */
type Facts = Omit<ModelWorld, 'accepted' | 'routers' | 'trouble' | 'failure'>

/** Finds the Deployment as the server answered just now, which is newer than the cache. */
function findDeployment(synced: SyncResult | undefined): Stored<DeploymentRecord> | undefined {
  for (const outcome of synced?.outcomes ?? []) {
    if (outcome.resource !== DEPLOYMENT || !('object' in outcome)) continue
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the descriptor says what it is
    return outcome.object as Stored<DeploymentRecord>
  }
  return undefined
}
