import type { Clock } from '@tutti/chassis'
import type { ModelStatus } from '@tutti/ensemble'
import {
  type Client,
  CONTROLLER_REVISION,
  DEPLOYMENT,
  type Deployment,
  keyOf,
  type Pod,
  type Secret,
  type Stored,
} from '@tutti/kube'
import { MODEL, type ModelObject } from '../../api/kinds.ts'
import type { RouterViews } from '../../pods/router-views.ts'
import { buildModelChildren } from '../../resources/build-model-children.ts'
import { buildPodTemplate, TEMPLATE_ANNOTATION } from '../../resources/model-deployment.ts'
import { toModelParts } from '../../resources/model-parts.ts'
import { planReplicas, type Scaling, toScaling } from '../../resources/model-scaling.ts'
import type { StepSettings } from '../../resources/step-settings.ts'
import {
  type Applier,
  type ChildOutcome,
  type SyncResult,
  throwIfFailed,
} from '../../runtime/apply.ts'
import { findCondition } from '../../runtime/conditions.ts'
import type { ReconcileContext, Result } from '../../runtime/controller.ts'
import type { EventRecorder } from '../../runtime/events.ts'
import type { StatusWriter } from '../../runtime/status.ts'
import type { Revision } from '../accepted-revisions.ts'
import type { RouterStates } from '../namespace/router-states.ts'
import { type Served, servedNameOf } from '../served-names.ts'
import { type StoredRevisions, storeAccepted } from '../store-accepted.ts'
import { type CheckedModel, checkModel } from './check-model.ts'
import { credentialsDigest } from './credentials-digest.ts'
import { childRepaired, eventsOfChange, replicasChanged, revisionAccepted } from './events.ts'
import { isVerified } from './judge-model.ts'
import type { ModelWorld } from './judgement.ts'
import type { ModelMetrics } from './metrics.ts'
import type { ModelPod } from './model-pods.ts'
import { isWaitingForGate, toNextLook } from './next-look.ts'
import { openGates } from './open-gates.ts'
import { findUnused, planWanted, versionsOf } from './plan-revisions.ts'
import { findFailure } from './pod-failure.ts'
import type { PodObserver } from './pod-observer.ts'
import { summarize } from './summarize.ts'

/** What a reconcile reads, from caches. */
export interface ModelReader {
  model(key: string): Stored<ModelObject> | undefined
  /** Who has the Model's served name, if it is another. */
  rivalOf(model: Stored<ModelObject>): Served | undefined
  secret(namespace: string, name: string): Stored<Secret> | undefined
  deploymentOf(model: Stored<ModelObject>): Stored<Deployment> | undefined
  podsOf(model: Stored<ModelObject>): readonly Stored<Pod>[]
  /** Those that the Model owns. */
  revisionsOf(model: Stored<ModelObject>): readonly Revision[]
  /** Those that an earlier Model of that name left behind. */
  orphansOf(model: Stored<ModelObject>): readonly Revision[]
}

export interface ModelReconcilerOptions {
  readonly client: Client
  readonly reader: ModelReader
  readonly applier: Applier
  readonly statuses: StatusWriter
  readonly events: Pick<EventRecorder, 'record'>
  readonly observer: PodObserver
  readonly routers: Pick<RouterViews, 'look'>
  readonly states: Pick<RouterStates, 'get'>
  /** What the operator's own scaling wants. */
  readonly scaler: {
    wanted(key: string, uid: string): number | undefined
    forget(key: string): void
  }
  readonly settings: StepSettings
  readonly metrics: ModelMetrics
  readonly clock: Clock
}

/** How old what routers said may be while somebody waits for it. */
const FRESH_MS = 200
/** While nobody waits, RouterViews asks often enough. */
const AGED_MS = 60_000

/** Makes a Model come true, one look at a time: read, judge, apply, ask, accept, and one status. */
export class ModelReconciler {
  readonly #o: ModelReconcilerOptions

  constructor(o: ModelReconcilerOptions) {
    this.#o = o
  }

  async reconcile({ signal }: ReconcileContext, key: string): Promise<Result> {
    const { reader, applier, statuses, scaler } = this.#o
    const model = reader.model(key)
    if (model === undefined) {
      applier.forget(key)
      statuses.forget(key)
      scaler.forget(key)
      return {}
    }
    // Its children go with it, by their owner references.
    if (model.metadata.deletionTimestamp !== undefined) return {}
    return await new ModelPass(this.#o, { model, key, signal }).run()
  }
}

interface PassInput {
  readonly model: Stored<ModelObject>
  readonly key: string
  readonly signal: AbortSignal
}

/** One look at one Model. */
class ModelPass {
  readonly #o: ModelReconcilerOptions
  readonly #model: Stored<ModelObject>
  readonly #key: string
  readonly #signal: AbortSignal
  readonly #before: ModelStatus

  constructor(o: ModelReconcilerOptions, { model, key, signal }: PassInput) {
    this.#o = o
    this.#model = model
    this.#key = key
    this.#signal = signal
    this.#before = o.statuses.current<ModelStatus>(model) ?? {}
  }

  async run(): Promise<Result> {
    const { model, checked, secret } = this.#check()
    const wish = this.#wish(checked, secret)
    const synced = await this.#sync(checked, wish)
    // A change will come, or nothing any more.
    if (synced !== undefined && synced.owner !== 'present') return {}
    const deployment = findDeployment(synced) ?? this.#o.reader.deploymentOf(model)
    const pods = await this.#observe(wish?.template)
    const world = await this.#accept({
      ...this.#facts(checked),
      ...(wish !== undefined && { scaling: wish.scaling, template: wish.template }),
      ...(deployment !== undefined && { deployment }),
      outcomes: synced?.outcomes ?? [],
      pods,
    })
    await this.#tell(world, synced)
    throwIfFailed(world)
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

  /** What is wanted of a spec that can be read. */
  #wish({ spec }: CheckedModel, secret: Stored<Secret> | undefined): Wish | undefined {
    if (spec === undefined) return undefined
    const { name, namespace = '' } = this.#model.metadata
    const parts = toModelParts({
      name,
      namespace,
      spec,
      settings: this.#o.settings,
      ...(secret !== undefined && { credentialsDigest: credentialsDigest(secret) }),
    })
    const scaling = toScaling(spec)
    const template = buildPodTemplate(parts).metadata?.annotations?.[TEMPLATE_ANNOTATION]
    return { parts, scaling, template: template ?? '' }
  }

  async #sync(checked: CheckedModel, wish: Wish | undefined): Promise<SyncResult | undefined> {
    if (checked.refusal !== undefined || wish === undefined) return undefined
    if (checked.spec?.paused === true) return undefined
    const { applier, reader, scaler, events } = this.#o
    const { uid } = this.#model.metadata
    if (wish.scaling.provider !== 'Native') scaler.forget(this.#key)
    const live = reader.deploymentOf(this.#model)?.spec.replicas
    const wanted = scaler.wanted(this.#key, uid)
    const replicas = planReplicas(wish.scaling, { live, wanted })
    const children = buildModelChildren(wish.parts, { scaling: wish.scaling, replicas })
    const owner = { resource: MODEL, object: this.#model }
    const synced = await applier.sync(owner, children, { signal: this.#signal })
    const now = findDeployment(synced)?.spec.replicas
    if (live !== undefined && now !== undefined && replicas !== undefined && live !== now) {
      events.record(replicasChanged(this.#model, live, now))
    }
    return synced
  }

  #observe(template: string | undefined): Promise<readonly ModelPod[]> {
    const { observer, reader } = this.#o
    return observer.observe(reader.podsOf(this.#model), {
      modelName: servedNameOf(this.#model),
      template,
      signal: this.#signal,
    })
  }

  /** Accepts what pods serve, asks the routers, and lets in the pods that all of them serve. */
  async #accept(facts: Facts): Promise<ModelWorld> {
    const { client, routers, states, metrics } = this.#o
    const { namespace = '' } = this.#model.metadata
    const { revisions, refusal } = await this.#store(facts)
    const isWaiting = this.#isWaiting(facts)
    const views = await routers.look(namespace, {
      maxAgeMs: isWaiting ? FRESH_MS : AGED_MS,
      signal: this.#signal,
    })
    const failure = findFailure(facts.pods, facts.deployment)
    const trouble = states.get(namespace)
    const world: ModelWorld = {
      ...facts,
      outcomes: [...facts.outcomes, ...this.#toOutcomes(refusal)],
      accepted: revisions.flatMap(versionsOf),
      routers: views,
      ...(failure !== undefined && { failure }),
      ...(trouble !== undefined && { trouble }),
    }
    await openGates(world, { client, clock: this.#o.clock, metrics, signal: this.#signal })
    return world
  }

  async #store({ spec, refusal, modelName, pods }: Facts): Promise<StoredRevisions> {
    const { client, reader, events, metrics } = this.#o
    const { name, uid, generation = 0 } = this.#model.metadata
    const stored = await storeAccepted({
      client,
      owner: { resource: MODEL, object: this.#model },
      known: reader.revisionsOf(this.#model),
      orphans: reader.orphansOf(this.#model),
      wanted: planWanted({
        owner: { name, uid, generation },
        modelName,
        pods,
        isVerified: (pod) =>
          refusal === undefined && spec !== undefined && isVerified(spec, pod) === true,
      }),
      findUnused: (all) => findUnused(pods, all),
      signal: this.#signal,
    })
    for (const { metadata } of stored.made) {
      metrics.accepted.add({})
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

  async #tell(world: ModelWorld, synced: SyncResult | undefined): Promise<void> {
    const { statuses, events, clock } = this.#o
    const status = summarize(world, clock.epochMs())
    const write = { resource: MODEL, object: this.#model, status }
    const result = await statuses.write<ModelStatus>(write, { signal: this.#signal })
    for (const outcome of synced?.outcomes ?? []) {
      if (outcome.result === 'repaired') events.record(childRepaired(this.#model, outcome))
    }
    if (result !== 'written') return
    for (const event of eventsOfChange(this.#model, this.#before, status)) events.record(event)
  }
}

/** What is known before anything is accepted, and routers are asked. */
type Facts = Omit<ModelWorld, 'accepted' | 'routers' | 'trouble' | 'failure'>

interface Wish {
  readonly parts: ReturnType<typeof toModelParts>
  readonly scaling: Scaling
  /** Digest of the pod template. */
  readonly template: string
}

/** As the server answered just now: newer than what the cache has. */
function findDeployment(synced: SyncResult | undefined): Stored<Deployment> | undefined {
  for (const outcome of synced?.outcomes ?? []) {
    if (outcome.resource !== DEPLOYMENT || !('object' in outcome)) continue
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the descriptor says what it is
    return outcome.object as Stored<Deployment>
  }
  return undefined
}
