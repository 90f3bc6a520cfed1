import type { ModelStatus } from '@tutti/ensemble'
import {
  CONTROLLER_REVISION,
  DEPLOYMENT,
  type Deployment,
  keyOf,
  type Secret,
  type Stored,
} from '@tutti/kube'
import { MODEL, type ModelObject } from '../../api/kinds.ts'
import { buildModelChildren } from '../../resources/build-model-children.ts'
import { planReplicas } from '../../resources/model-scaling.ts'
import type { StepSettings } from '../../resources/step-settings.ts'
import {
  type Applier,
  type ChildOutcome,
  type SyncResult,
  throwIfFailed,
} from '../../runtime/apply.ts'
import type { Owner } from '../../runtime/children.ts'
import { findCondition } from '../../runtime/conditions.ts'
import type { ReconcileContext, Result } from '../../runtime/controller.ts'
import type { StatusWriter } from '../../runtime/status.ts'
import type { ControllerParts } from '../context.ts'
import { eventsOfChange, revisionAccepted } from '../events.ts'
import { routerKeyOf, troubleOf } from '../router/router-trouble.ts'
import { servedNameOf } from '../served-names.ts'
import { type StoredRevisions, storeAccepted } from '../store-accepted.ts'
import { type CheckedModel, checkModel } from './check-model.ts'
import { templateOf } from './deployment-state.ts'
import { type DesiredModel, toDesiredModel } from './desired-model.ts'
import { BAD_OF_MODEL, childRepaired, replicasChanged } from './events.ts'
import type { ModelMetrics } from './metrics.ts'
import { isVerified } from './model-conditions.ts'
import { findFailure } from './model-failure.ts'
import type { ModelPod } from './model-pods.ts'
import type { ModelReader } from './model-reader.ts'
import { isLeftAsWas, type ModelWorld } from './model-world.ts'
import { isWaitingForGate, toNextLook } from './next-look.ts'
import { openGates } from './open-gates.ts'
import { findUnused, planWanted, versionsOf } from './plan-revisions.ts'
import type { PodObserver } from './pod-observer.ts'
import { summarize } from './summarize.ts'

export interface ModelPassOptions
  extends Pick<ControllerParts, 'client' | 'events' | 'clock' | 'caches' | 'views'> {
  readonly reader: ModelReader
  readonly applier: Applier
  readonly statuses: StatusWriter
  readonly observer: PodObserver
  /** What the operator's own scaling wants. */
  readonly scaler: {
    wanted(key: string, uid: string): number | undefined
    forget(key: string): void
  }
  readonly settings: StepSettings
  readonly counts: ModelMetrics
}

/** How old an answer of a router may be while a pod waits for it. */
const FRESH_MS = 200
/** While no pod waits, RouterViews asks often enough. */
const AGED_MS = 60_000

/** What one look is about. */
export interface PassInput extends Pick<ReconcileContext, 'signal' | 'withoutSlot'> {
  readonly model: Stored<ModelObject>
  readonly key: string
}

/**
 * One look at one Model: check, apply, ask, accept, and one status. It throws OwnerMoved where something is to be changed for a
 * Model that is not as it was seen.
 */
export class ModelPass {
  readonly #o: ModelPassOptions
  readonly #model: Stored<ModelObject>
  readonly #owner: Owner
  readonly #key: string
  readonly #signal: AbortSignal
  /** What runs in pods is not trusted to answer: no other namespace waits for it. */
  readonly #withoutSlot: ReconcileContext['withoutSlot']
  readonly #before: ModelStatus
  #left: StoredRevisions['left']

  constructor(o: ModelPassOptions, { model, key, signal, withoutSlot }: PassInput) {
    this.#o = o
    this.#model = model
    this.#owner = { resource: MODEL, object: model }
    this.#key = key
    this.#signal = signal
    this.#withoutSlot = withoutSlot
    this.#before = o.statuses.current<ModelStatus>(model) ?? {}
  }

  async run(): Promise<Result> {
    const { model, checked, secret } = this.#check()
    const { settings } = this.#o
    const desired = checked.spec && toDesiredModel(model, checked.spec, { settings, secret })
    const synced = await this.#sync(checked, desired)
    const deployment = findDeployment(synced) ?? this.#o.reader.deploymentOf(model)
    // Where nothing is changed for a Model, the pods that there are, are of the newest template that there is.
    const pods = await this.#observe(
      synced === undefined ? deployment && templateOf(deployment) : desired?.template,
    )
    const world = await this.#accept({
      ...this.#facts(checked),
      ...(desired !== undefined && { scaling: desired.scaling, template: desired.template }),
      ...(deployment !== undefined && { deployment }),
      outcomes: synced?.outcomes ?? [],
      pods,
    })
    await this.#tell(world)
    return this.#end(world)
  }

  /** @throws what did not go well, now that everything else is done. */
  #end(world: ModelWorld): Result {
    throwIfFailed(world)
    if (this.#left !== undefined) throw this.#left
    const requeueAfterMs = toNextLook(world, this.#o.clock.epochMs())
    return requeueAfterMs === undefined ? {} : { requeueAfterMs }
  }

  #check(): {
    readonly model: Stored<ModelObject>
    readonly checked: CheckedModel
    readonly secret: Stored<Secret> | undefined
  } {
    const model = this.#model
    const { reader, settings } = this.#o
    const secretName: unknown = Object(Object(Object(model.spec).storage).secretRef).name
    const secret =
      typeof secretName === 'string'
        ? reader.secret(model.metadata.namespace ?? '', secretName)
        : undefined
    const rival = reader.rivalOf(model)
    const checked = checkModel({ model, rival, settings, hasSecret: secret !== undefined })
    return { model, checked, secret }
  }

  async #sync(
    checked: CheckedModel,
    desired: DesiredModel | undefined,
  ): Promise<SyncResult | undefined> {
    if (checked.refusal !== undefined || desired === undefined) return undefined
    if (checked.spec?.paused === true) return undefined
    const { applier, reader, scaler, events } = this.#o
    const { uid } = this.#model.metadata
    if (desired.scaling.provider !== 'Native') scaler.forget(this.#key)
    const live = reader.deploymentOf(this.#model)?.spec.replicas
    const wanted = scaler.wanted(this.#key, uid)
    const replicas = planReplicas(desired.scaling, { live, wanted })
    const children = buildModelChildren(desired.parts, { scaling: desired.scaling, replicas })
    const synced = await applier.sync(this.#owner, children, {
      signal: this.#signal,
      onRepaired: (child) => events.record(childRepaired(this.#model, child)),
    })
    const now = findDeployment(synced)?.spec.replicas
    if (live !== undefined && now !== undefined && replicas !== undefined && live !== now) {
      events.record(replicasChanged(this.#model, live, now))
    }
    return synced
  }

  #observe(template: string | undefined): Promise<readonly ModelPod[]> {
    const { observer, reader } = this.#o
    const modelName = servedNameOf(this.#model)
    const o = { modelName, template, signal: this.#signal }
    return this.#withoutSlot(() => observer.observe(reader.podsOf(this.#model), o))
  }

  /** Accepts what pods serve, asks the routers, and lets in the pods that all of them serve. */
  async #accept(facts: Facts): Promise<ModelWorld> {
    const { client, views, caches, counts: metrics } = this.#o
    const { namespace = '' } = this.#model.metadata
    const { revisions, refusal, left } = await this.#store(facts)
    this.#left = left
    const maxAgeMs = this.#isWaiting(facts) ? FRESH_MS : AGED_MS
    const routers = await this.#withoutSlot(() =>
      views.look(namespace, { maxAgeMs, signal: this.#signal }),
    )
    const failure = findFailure(facts.pods, facts.deployment, facts)
    const trouble = troubleOf(caches.routers.get(routerKeyOf(namespace)))
    const world: ModelWorld = {
      ...facts,
      outcomes: [...facts.outcomes, ...this.#toOutcomes(refusal)],
      accepted: revisions.flatMap(versionsOf),
      routers,
      ...(failure !== undefined && { failure }),
      ...(trouble !== undefined && { trouble }),
    }
    await openGates(world, { client, clock: this.#o.clock, metrics, signal: this.#signal })
    return world
  }

  async #store(facts: Facts): Promise<StoredRevisions> {
    const { spec, refusal, modelName, pods } = facts
    const { client, reader, events, counts } = this.#o
    const { name, uid, generation = 0 } = this.#model.metadata
    const isOfSpec = refusal === undefined && !isLeftAsWas(facts)
    const wanted = planWanted({
      owner: { name, uid, generation },
      modelName,
      pods,
      isVerified: (pod) => isOfSpec && spec !== undefined && isVerified(spec, pod) === true,
    })
    const stored = await storeAccepted({
      client,
      owner: this.#owner,
      known: reader.revisionsOf(this.#model),
      orphans: reader.orphansOf(this.#model),
      wanted,
      findUnused: (all, history) => findUnused(pods, all, history),
      signal: this.#signal,
    })
    for (const { metadata } of stored.made) {
      counts.accepted.add({})
      events.record(revisionAccepted(this.#model, metadata.name))
    }
    return stored
  }

  /** What cannot be stored is told as a child is that cannot be made. */
  #toOutcomes(error: unknown): readonly ChildOutcome[] {
    if (error === undefined) return []
    return [{ resource: CONTROLLER_REVISION, key: keyOf(this.#model), result: 'failed', error }]
  }

  /** True if the routers' answer may change something now. */
  #isWaiting({ pods }: Pick<ModelWorld, 'pods'>): boolean {
    const ready = findCondition(this.#before.conditions, 'Ready')
    const { generation } = this.#model.metadata
    if (ready?.status !== 'True' || ready.observedGeneration !== generation) return true
    return pods.some(({ pod }) => isWaitingForGate(pod))
  }

  #facts({
    spec,
    refusal,
  }: CheckedModel): Pick<ModelWorld, 'model' | 'modelName' | 'before' | 'spec' | 'refusal'> {
    return {
      model: this.#model,
      modelName: servedNameOf(this.#model),
      before: this.#before,
      ...(spec !== undefined && { spec }),
      ...(refusal !== undefined && { refusal }),
    }
  }

  async #tell(world: ModelWorld): Promise<void> {
    const { statuses, events, clock } = this.#o
    const status = summarize(world, clock.epochMs())
    const write = { resource: MODEL, object: this.#model, status }
    const result = await statuses.write<ModelStatus>(write, { signal: this.#signal })
    if (result !== 'written') return
    const before = this.#before
    const change = { before, after: status, bad: BAD_OF_MODEL, textOf: reasonOf }
    for (const event of eventsOfChange(this.#model, change)) events.record(event)
  }
}

/** Messages name pods, which come and go. */
function reasonOf({ reason }: { readonly reason: string }): string {
  return reason
}

/** What is known before anything is accepted, and routers are asked. */
type Facts = Omit<ModelWorld, 'accepted' | 'routers' | 'trouble' | 'failure'>

/** As the server answered just now: newer than what the cache has. */
function findDeployment(synced: SyncResult | undefined): Stored<Deployment> | undefined {
  for (const outcome of synced?.outcomes ?? []) {
    if (outcome.resource !== DEPLOYMENT || !('object' in outcome)) continue
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the descriptor says what it is
    return outcome.object as Stored<Deployment>
  }
  return undefined
}
