import type { Clock, CounterMetric, Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { atOnce } from '../pods/at-once.ts'
import type { PodAddress, PodClient } from '../pods/pod-client.ts'
import type { ManagedController } from '../runtime/manager.ts'
import { decideReplicas, type NativeScaling, type PodLoad, type Wish } from './decide-replicas.ts'
import { loadUnknown, replicasDecided } from './log-events.ts'

/** A Model whose replicas the operator decides. */
export interface ScaledModel {
  /** `namespace/name`. */
  readonly key: string
  readonly uid: string
  /** What clients call it. */
  readonly modelName: string
  readonly scaling: NativeScaling
  /** What the Deployment wants now. */
  readonly replicas: number
  /** That are ready. */
  readonly pods: readonly PodAddress[]
}

export interface ReplicaScalerOptions {
  readonly client: PodClient
  /** Those to look at, at every look anew. */
  readonly models: () => Iterable<ScaledModel>
  /** The number that is wanted of a Model changed. */
  readonly onDecision: (key: string) => void
  readonly scalings: CounterMetric<'direction'>
  readonly clock: Clock
  readonly log: Logger
  /** Between two looks; default 15 s, as the HPA has it. */
  readonly everyMs?: number
}

interface Decided {
  readonly uid: string
  readonly replicas: number
  readonly wishes: readonly Wish[]
}

/** Models that are asked at the same time. */
const AT_ONCE = 32

/**
 * Looks from time to time how loaded the pods of Models are, and decides how many there are to be. It writes nothing: the
 * Model's reconcile does, so that a Deployment has one writer.
 */
export class ReplicaScaler implements ManagedController {
  readonly name = 'model-scaling'
  readonly #o: ReplicaScalerOptions
  readonly #decided = new Map<string, Decided>()
  readonly #aborting = new AbortController()
  #isStopped = false
  #looking: Promise<void> = Promise.resolve()
  #stopTimer: () => void = () => {}

  constructor(o: ReplicaScalerOptions) {
    this.#o = o
    for (const direction of ['up', 'down'] as const) o.scalings.init({ direction })
  }

  /** What was decided last for a Model; undefined if nothing was. */
  wanted(key: string, uid: string): number | undefined {
    const decided = this.#decided.get(key)
    return decided?.uid === uid ? decided.replicas : undefined
  }

  /** Somebody else decides from now on, or the Model is gone. */
  forget(key: string): void {
    this.#decided.delete(key)
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
    await this.#looking
  }

  #schedule(): void {
    if (this.#isStopped) return
    this.#stopTimer = this.#o.clock.setTimer(this.#o.everyMs ?? 15_000, () => {
      this.#looking = this.#look().finally(() => this.#schedule())
    })
  }

  async #look(): Promise<void> {
    // What cannot change needs no questions.
    const models = [...this.#o.models()].filter(({ scaling }) => scaling.min < scaling.max)
    const keys = new Set(models.map(({ key }) => key))
    for (const key of this.#decided.keys()) if (!keys.has(key)) this.#decided.delete(key)
    await atOnce(models, AT_ONCE, async (model) => {
      if (!this.#isStopped) await this.#decide(model)
    })
  }

  async #decide(model: ScaledModel): Promise<void> {
    const loads = await Promise.all(model.pods.map((pod) => this.#loadOf(model, pod)))
    if (this.#isStopped) return
    const { key, uid, scaling } = model
    const known = this.#decided.get(key)
    const current = this.wanted(key, uid) ?? model.replicas
    const wishes = known?.uid === uid ? known.wishes : []
    const now = this.#o.clock.now()
    const decision = decideReplicas({ scaling, current, loads, wishes, now })
    this.#decided.set(key, { uid, ...decision })
    if (decision.replicas === current) return
    this.#o.scalings.add({ direction: decision.replicas > current ? 'up' : 'down' })
    replicasDecided(this.#o.log, { key, from: current, to: decision.replicas })
    this.#o.onDecision(key)
  }

  async #loadOf(model: ScaledModel, pod: PodAddress): Promise<PodLoad | undefined> {
    try {
      const { signal } = this.#aborting
      const { models } = await this.#o.client.loadOfStep(pod, { signal })
      return models.find(({ name }) => name === model.modelName)
    } catch (error) {
      // It counts as unknown: nothing is taken away because of it.
      if (!this.#aborting.signal.aborted) loadUnknown(this.#o.log, { key: model.key, error })
      return undefined
    }
  }
}
