import { setTimeout as sleep } from 'node:timers/promises'
import { type Clock, systemClock } from '@tutti/chassis'
import {
  type Client,
  createReflector,
  type KubeObject,
  type Reflector,
  type ReflectorOptions,
} from '@tutti/kube'
import type { OpenReflector } from '../runtime/cache.ts'
import type { QueueReading, RuntimeMetrics } from '../runtime/metrics.ts'

export interface RestWatchOptions {
  /** Client of the operator, through which it lists and watches. */
  readonly client: Client
  /** Client that asks the server without a proxy. */
  readonly direct: Client
  readonly metrics: RuntimeMetrics
  /** Function that counts the writes that were answered so far. */
  readonly writes: () => number
  /** Milliseconds of silence after which a watch counts as dead. */
  readonly idleMs?: number
  /** True if Kubernetes' own controllers run, which look at Deployments; default true. */
  readonly hasControllers?: boolean
}

/** A reconcile that has ended. */
export interface EndedPass {
  readonly controller: string
  /** Number of writes that were answered before its end. */
  readonly writes: number
}

/** A timer that fires later than that is none that the operator waits for: polls, renewals, the longer delays of retries. */
const SOON_MS = 500
/** Time within which others act on what the operator wrote. */
const QUIET_MS = 250

/**
 * Detects when an operator has nothing left to do: no key is queued, no reconcile runs, no timer is due soon, and the caches
 * equal the server's state. The operator must use its clock, metrics and reflectors.
 */
export class RestWatch {
  readonly passes: EndedPass[] = []
  readonly clock: Clock
  readonly metrics: RuntimeMetrics
  readonly openReflector: OpenReflector
  readonly #options: RestWatchOptions
  readonly #dues = new Set<{ readonly at: number }>()
  readonly #queues: QueueReading[] = []
  readonly #reflectors: Opened[] = []
  #active = 0
  #events = 0

  constructor(o: RestWatchOptions) {
    this.#options = o
    this.clock = { ...systemClock, setTimer: (ms, callback) => this.#setTimer(ms, callback) }
    this.metrics = { ...o.metrics, controller: (name, slots) => this.#watchController(name, slots) }
    this.openReflector = (options) => this.#open(options)
  }

  /** Resolves when the operator is at rest. @param o.isBehind - true to skip the comparison of the caches with the server. */
  async atRest({ isBehind = false }: { readonly isBehind?: boolean } = {}): Promise<void> {
    for (;;) {
      const before = this.#changes()
      await sleep(QUIET_MS)
      if (this.#isBusy() || this.#changes() !== before) continue
      if (isBehind || ((await this.#isCurrent()) && this.#changes() === before)) return
    }
  }

  #changes(): number {
    return this.#events + this.#options.writes() + this.passes.length
  }

  #isBusy(): boolean {
    const soon = systemClock.now() + SOON_MS
    return (
      this.#active > 0 ||
      this.#queues.some(({ depth }) => depth > 0) ||
      [...this.#dues].some(({ at }) => at < soon)
    )
  }

  /** Every cache has what the server has, and Kubernetes' own controller has seen every Deployment as it is. */
  async #isCurrent(): Promise<boolean> {
    const { hasControllers = true } = this.#options
    for (const { options, reflector } of this.#reflectors) {
      const { resource, namespace, labelSelector, fieldSelector } = options
      const { items } = await this.#options.direct.list<KubeObject>(resource, {
        ...(namespace !== undefined && { namespace }),
        ...(labelSelector !== undefined && { labelSelector }),
        ...(fieldSelector !== undefined && { fieldSelector }),
      })
      if (versionsOf(items) !== versionsOf(reflector.objects.values())) return false
      if (hasControllers && resource.kind === 'Deployment' && !items.every(isObserved)) return false
    }
    return true
  }

  #setTimer(delayMs: number, callback: () => void): () => void {
    const due = { at: systemClock.now() + delayMs }
    this.#dues.add(due)
    const stop = systemClock.setTimer(delayMs, () => {
      this.#dues.delete(due)
      callback()
    })
    return () => {
      this.#dues.delete(due)
      stop()
    }
  }

  #watchController(name: string, slots: number): ReturnType<RuntimeMetrics['controller']> {
    const metrics = this.#options.metrics.controller(name, slots)
    return {
      ...metrics,
      readQueue: (queue) => {
        this.#queues.push(queue)
        metrics.readQueue(queue)
      },
      started: () => {
        this.#active += 1
        metrics.started()
      },
      ended: (outcome, tookMs) => {
        this.#active -= 1
        this.passes.push({ controller: name, writes: this.#options.writes() })
        metrics.ended(outcome, tookMs)
      },
    }
  }

  #open<T extends KubeObject, K extends KubeObject>(
    options: Omit<ReflectorOptions<T, K>, 'client'>,
  ): Reflector<K> {
    const { client, idleMs } = this.#options
    const reflector = createReflector<T, K>({
      ...options,
      client,
      // When a watch counts as dead is nothing that the operator waits for.
      clock: systemClock,
      ...(idleMs !== undefined && { idleMs }),
      onEvent: (event) => {
        this.#events += 1
        options.onEvent(event)
      },
    })
    this.#reflectors.push({ options, reflector })
    return reflector
  }
}

interface Opened {
  readonly options: Pick<
    ReflectorOptions<KubeObject>,
    'resource' | 'namespace' | 'labelSelector' | 'fieldSelector'
  >
  readonly reflector: Pick<Reflector<KubeObject>, 'objects'>
}

function versionsOf(objects: Iterable<KubeObject>): string {
  const texts = [...objects].map(({ metadata }) => `${metadata.uid}@${metadata.resourceVersion}`)
  return texts.toSorted().join()
}

function isObserved({ metadata, status }: KubeObject & { status?: unknown }): boolean {
  return Object(status).observedGeneration === metadata.generation
}
