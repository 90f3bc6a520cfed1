import type { WantedByRouter } from '@tutti/api'
import type { Clock, Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Stored } from '@tutti/kube'
import type { PodAddress, PodClient } from '../pods/pod-client.ts'
import { isReady, type PodState, podAddressOf } from '../pods/pod-state.ts'
import type { ManagedController } from '../runtime/manager.ts'
import { demandUnknown } from './log-events.ts'

export interface RouterDemandOptions {
  readonly client: Pick<PodClient, 'wantedByRouter'>
  /** Function that lists the namespaces with Models that may sleep. */
  readonly namespaces: () => Iterable<string>
  /** Function that lists all router pods of a namespace, ready or not. */
  readonly routersOf: (namespace: string) => readonly Stored<PodState>[]
  /** Callback when requests wait for models of a namespace, by their served names. */
  readonly onWanted: (namespace: string, models: ReadonlySet<string>) => void
  readonly clock: Clock
  readonly log: Logger
  /** Milliseconds between two looks for routers to ask, and after a router that did not answer; default 1 s. */
  readonly everyMs?: number
}

/** A ready router that is asked again and again. */
interface Asked {
  readonly namespace: string
  readonly address: PodAddress
  readonly stopping: AbortController
  /** Its last answer; `seen` is '' before the first. */
  answer: WantedByRouter
}

const EVERY_MS = 1000
const PAUSE_MS = 100
const NOTHING: WantedByRouter = { seen: '', models: [] }

/**
 * Knows for which Models requests wait in routers, at once: each ready router of a namespace with Models that may sleep has a
 * question open, which it answers when its demand changes. Namespaces without such Models are not asked.
 */
export class RouterDemand implements ManagedController {
  readonly name = 'router-demand'
  readonly #options: RouterDemandOptions
  /** By the uid of the pod. */
  readonly #asked = new Map<string, Asked>()
  readonly #running = new Set<Promise<void>>()
  #isStopped = false
  #stopTimer: () => void = () => {}

  constructor(o: RouterDemandOptions) {
    this.#options = o
  }

  /** Tells whether requests wait for a model in one of the routers of a namespace. */
  isWanted(namespace: string, model: string): boolean {
    for (const one of this.#asked.values()) {
      if (one.namespace === namespace && one.answer.models.includes(model)) return true
    }
    return false
  }

  start(): void {
    this.#look()
  }

  stop(): void {
    this.#isStopped = true
    this.#stopTimer()
    for (const { stopping } of this.#asked.values()) stopping.abort()
  }

  abort(): void {
    this.stop()
  }

  async drained(): Promise<void> {
    await Promise.all(this.#running)
  }

  /** Begins to ask routers that are new, and asks those no more that are gone. */
  #look(): void {
    if (this.#isStopped) return
    const { clock, everyMs = EVERY_MS } = this.#options
    this.#stopTimer = clock.setTimer(everyMs, () => this.#look())
    const ready = this.#readyRouters()
    for (const [uid, { stopping }] of this.#asked) {
      if (ready.has(uid)) continue
      this.#asked.delete(uid)
      stopping.abort()
    }
    for (const [uid, { namespace, address }] of ready) {
      if (this.#asked.has(uid)) continue
      const asked = { namespace, address, stopping: new AbortController(), answer: NOTHING }
      this.#asked.set(uid, asked)
      const running = this.#ask(asked)
      this.#running.add(running)
      void running.then(() => this.#running.delete(running))
    }
  }

  #readyRouters(): ReadonlyMap<string, Pick<Asked, 'namespace' | 'address'>> {
    const { namespaces, routersOf } = this.#options
    const found = new Map<string, Pick<Asked, 'namespace' | 'address'>>()
    for (const namespace of new Set(namespaces())) {
      for (const pod of routersOf(namespace)) {
        const address = podAddressOf(pod)
        if (address !== undefined && isReady(pod)) {
          found.set(pod.metadata.uid, { namespace, address })
        }
      }
    }
    return found
  }

  async #ask(asked: Asked): Promise<void> {
    const { client, onWanted, log } = this.#options
    const { address, namespace, stopping } = asked
    const { signal } = stopping
    while (!signal.aborted) {
      try {
        const { seen } = asked.answer
        asked.answer = await client.wantedByRouter(address, { signal, seen })
        const { models } = asked.answer
        if (models.length > 0 && !signal.aborted) onWanted(namespace, new Set(models))
        // A router waits with its answer. What answers again and again at once is none of ours, and must not keep this process busy.
        await this.#pause(signal, PAUSE_MS)
      } catch (error) {
        if (signal.aborted) return
        asked.answer = NOTHING
        demandUnknown(log, { pod: address.name, namespace, error: ServeError.from(error) })
        await this.#pause(signal, this.#options.everyMs ?? EVERY_MS)
      }
    }
  }

  async #pause(signal: AbortSignal, ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<unknown>()
    const stopTimer = this.#options.clock.setTimer(ms, () => resolve(undefined))
    signal.addEventListener('abort', resolve)
    await promise
    signal.removeEventListener('abort', resolve)
    stopTimer()
  }
}
