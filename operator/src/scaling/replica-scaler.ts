import type { Clock, CounterMetric, Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { PodAddress, PodClient } from '../pods/pod-client.ts'
import { KeyedLimiter } from '../runtime/keyed-limiter.ts'
import type { ManagedController } from '../runtime/manager.ts'
import {
  decideReplicas,
  type NativeScaling,
  type PodLoad,
  type Recommendation,
  type ScalingDecision,
} from './decide-replicas.ts'
import { Idleness } from './idleness.ts'
import { loadUnknown, replicasDecided } from './log-events.ts'

/** A Model, or the built-ins of a namespace, that the operator itself scales, by the provider Native. */
export interface ScaledModel {
  /** Key of the Model, or of the Router with the built-ins, `namespace/name`. */
  readonly key: string
  readonly namespace: string
  readonly uid: string
  /** The names of the models of its pods in the load that steps tell. The busiest of a pod counts. */
  readonly modelNames: readonly string[]
  readonly scaling: NativeScaling
  /** Replicas in the Deployment's spec now. */
  readonly replicas: number
  /** Addresses of the ready pods. */
  readonly pods: readonly PodAddress[]
}

export interface ReplicaScalerOptions {
  /** Name of the loop for logs. */
  readonly name: string
  readonly client: PodClient
  /** Function that lists the Models to look at; called at every look. */
  readonly models: () => Iterable<ScaledModel>
  /** Callback when the decided replicas of a Model change. */
  readonly onDecision: (key: string) => void
  /** Tells whether requests wait for a Model; absent if none ever does. */
  readonly isWanted?: (namespace: string, modelName: string) => boolean
  readonly scalings: CounterMetric<'direction'>
  readonly clock: Clock
  readonly log: Logger
  /** Milliseconds between two looks; default 15 s, as for the HPA. */
  readonly everyMs?: number
}

interface Decided {
  readonly uid: string
  readonly replicas: number
  readonly recommendations: readonly Recommendation[]
}

/** Models that are looked at at the same time: of one namespace, and of all together. */
const AT_ONCE = { perKey: 8, total: 256 } as const

/**
 * Asks the pods of Models for their load at intervals, and decides the replicas. It writes no object: the Model's reconcile reads
 * the decision and writes the Deployment. A Model whose last look has not ended is left out of the next look.
 */
export class ReplicaScaler implements ManagedController {
  readonly name: string
  readonly #options: ReplicaScalerOptions
  readonly #decided = new Map<string, Decided>()
  /** Models as they were at the last look, by key. */
  #models: ReadonlyMap<string, ScaledModel> = new Map()
  readonly #idleness = new Idleness()
  readonly #limiter = new KeyedLimiter(AT_ONCE)
  /** Running looks, by the key of the Model. */
  readonly #looks = new Map<string, Promise<void>>()
  readonly #aborting = new AbortController()
  #isStopped = false
  #stopTimer: () => void = () => {}

  constructor(o: ReplicaScalerOptions) {
    this.name = o.name
    this.#options = o
    for (const direction of ['up', 'down'] as const) o.scalings.init({ direction })
  }

  /** Returns the replicas that were decided last for a Model; undefined if there is no decision. */
  wanted(key: string, uid: string): number | undefined {
    const decided = this.#decided.get(key)
    return decided?.uid === uid ? decided.replicas : undefined
  }

  /** Forgets the decision for a Model that is gone, or that another client scales from now on. */
  forget(key: string): void {
    this.#decided.delete(key)
    this.#idleness.forget(key)
  }

  /** Decides at once on a pod for each of these Models that sleeps and has one of the served names. */
  wake(models: Iterable<ScaledModel>, modelNames: ReadonlySet<string>): void {
    for (const { key, uid, replicas, modelNames: own, scaling } of models) {
      if (scaling.idleAfterMs === undefined || !own.some((name) => modelNames.has(name))) continue
      if ((this.wanted(key, uid) ?? replicas) === 0) this.wakeOne(key, uid)
    }
  }

  /** Decides at once on a pod for a Model that sleeps; once that is decided, nothing happens. */
  wakeOne(key: string, uid: string): void {
    if ((this.wanted(key, uid) ?? 0) > 0) return
    this.#idleness.forget(key)
    this.#decide({ key, uid, from: 0 }, { replicas: 1, recommendations: [] })
  }

  start(): void {
    this.#schedule()
  }

  stop(): void {
    this.#isStopped = true
    this.#stopTimer()
  }

  abort(): void {
    this.#aborting.abort(new ServeError('SERVER_STOPPING', 'the operator is stopping'))
  }

  async drained(): Promise<void> {
    await Promise.all(this.#looks.values())
  }

  #schedule(): void {
    if (this.#isStopped) return
    this.#stopTimer = this.#options.clock.setTimer(this.#options.everyMs ?? 15_000, () => {
      this.#schedule()
      this.#look()
    })
  }

  #look(): void {
    // A Model whose replicas cannot change needs no questions.
    const models = [...this.#options.models()].filter(mayChange)
    this.#models = new Map(models.map((model) => [model.key, model]))
    for (const key of this.#decided.keys()) if (!this.#models.has(key)) this.forget(key)
    for (const { key, namespace } of models) {
      if (this.#looks.has(key)) continue
      const look = this.#limiter.run(namespace, () => this.#lookAt(key))
      this.#looks.set(
        key,
        look.finally(() => this.#looks.delete(key)),
      )
    }
  }

  async #lookAt(key: string): Promise<void> {
    // It may have waited for long, and be another or gone.
    const model = this.#isStopped ? undefined : this.#models.get(key)
    if (model === undefined) return
    const loads = await Promise.all(model.pods.map((pod) => this.#loadOf(model, pod)))
    const { uid, scaling } = model
    if (this.#isStopped || this.#models.get(key)?.uid !== uid) return
    const known = this.#decided.get(key)
    const current = this.wanted(key, uid) ?? model.replicas
    const recommendations = known?.uid === uid ? known.recommendations : []
    const now = this.#options.clock.now()
    const idleMs = this.#idleness.look(model, this.#isWanted(model) ? [undefined] : loads, now)
    const input = { scaling, current, loads, recommendations, now, idleMs }
    this.#decide({ key, uid, from: current }, decideReplicas(input))
  }

  #isWanted({ namespace, modelNames }: ScaledModel): boolean {
    const { isWanted = () => false } = this.#options
    return modelNames.some((name) => isWanted(namespace, name))
  }

  #decide(
    { key, uid, from }: { readonly key: string; readonly uid: string; readonly from: number },
    decision: ScalingDecision,
  ): void {
    const { scalings, log, onDecision } = this.#options
    const to = decision.replicas
    this.#decided.set(key, { uid, ...decision })
    if (to === from) return
    scalings.add({ direction: to > from ? 'up' : 'down' })
    replicasDecided(log, { key, from, to })
    onDecision(key)
  }

  async #loadOf(model: ScaledModel, pod: PodAddress): Promise<PodLoad | undefined> {
    try {
      const { signal } = this.#aborting
      const { models } = await this.#options.client.loadOfStep(pod, { signal })
      return loadOfGroup(models.filter(({ name }) => model.modelNames.includes(name)))
    } catch (error) {
      // It counts as unknown: nothing is taken away because of it.
      if (!this.#aborting.signal.aborted) loadUnknown(this.#options.log, { key: model.key, error })
      return undefined
    }
  }
}

/** Finds the load of the model with the most requests for what it executes at once, with the requests of all; undefined without a model. */
function loadOfGroup(loads: readonly PodLoad[]): PodLoad | undefined {
  const [busiest] = loads.toSorted((one, other) => shareOf(other) - shareOf(one))
  if (busiest === undefined) return undefined
  const counts = loads.map(({ requests = Number.NaN }) => requests)
  const requests = counts.reduce((sum, count) => sum + count, 0)
  return { ...busiest, requests: Number.isNaN(requests) ? undefined : requests }
}

function shareOf({ inFlight, queued, slots }: PodLoad): number {
  return (inFlight + queued) / slots
}

function mayChange({ scaling }: ScaledModel): boolean {
  return scaling.min < scaling.max || scaling.idleAfterMs !== undefined
}
