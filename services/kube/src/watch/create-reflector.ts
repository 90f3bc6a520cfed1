import { sleep } from '@tutti/chassis'
import type { Selection, WatchEvent, WatchOptions } from '../client.ts'
import { isExpired, isTerminal, type KubeError, noAnswer } from '../kube-error.ts'
import { KubeEvents } from '../log-events.ts'
import type { KubeObject, Stored } from '../object.ts'
import { apiVersionOf } from '../resource.ts'
import { createObjectStore, keyStringOf, type ObjectStore } from './object-store.ts'
import type { Reflector, ReflectorEvent, ReflectorOptions, ReflectorStats } from './reflector.ts'
import { createRetryPace, type RetryPace } from './retry-pace.ts'
import { withoutManagedFields } from './trim.ts'

/** The server ends a watch after so many seconds, or up to twice as many; as client-go. */
const WATCH_SECONDS = 300
/** A server sends a bookmark about every minute: when two have not come, the server is gone. */
const IDLE_MS = 150_000
/** A watch that ends sooner and without an event is a failure: to come back at once would be a hot loop. */
const SHORTEST_WATCH_MS = 1000

/** Makes a reflector that starts to read and to watch at once. The caller closes the reflector. */
export function createReflector<T extends KubeObject, K extends KubeObject = T>(
  o: ReflectorOptions<T, K>,
): Reflector<K> {
  const reflector = new WatchingReflector(o)
  reflector.start()
  return reflector
}

class WatchingReflector<T extends KubeObject, K extends KubeObject> implements Reflector<K> {
  readonly #options: ReflectorOptions<T, K>
  /** Name for log lines, `deployments.apps/v1` say. */
  readonly #name: string
  readonly #events: KubeEvents
  readonly #random: () => number
  readonly #trim: (object: Stored<T>) => Stored<K>
  readonly #store: ObjectStore<K> = createObjectStore<K>()
  readonly #pace: RetryPace
  readonly #stop = new AbortController()
  #running: Promise<void> = Promise.resolve()
  /** Version from which a watch goes on; empty if a complete state is needed. */
  #resourceVersion = ''
  #hasSynced = false
  #isWatchListServed = true
  /** True if the last complete state has expired before anything came of it. */
  #isExpiredAnew = false
  #isFailing = false
  #lists = 0
  #watches = 0
  #errors = 0
  #heardMs: number

  constructor(o: ReflectorOptions<T, K>) {
    this.#options = o
    this.#name = `${o.resource.plural}.${apiVersionOf(o.resource)}`
    this.#events = new KubeEvents(o.log)
    this.#random = o.random ?? Math.random
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- without a trim of the caller's, all of it is kept
    this.#trim = o.trim ?? (withoutManagedFields as unknown as (object: Stored<T>) => Stored<K>)
    this.#pace = createRetryPace(this.#random)
    this.#heardMs = o.clock.now()
  }

  get objects(): ReadonlyMap<string, Stored<K>> {
    return this.#store.objects
  }

  get hasSynced(): boolean {
    return this.#hasSynced
  }

  stats(): ReflectorStats {
    return {
      lists: this.#lists,
      watches: this.#watches,
      errors: this.#errors,
      objects: this.#store.objects.size,
      silentMs: this.#options.clock.now() - this.#heardMs,
    }
  }

  start(): void {
    this.#running = this.#run()
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  get #isClosed(): boolean {
    return this.#stop.signal.aborted
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      try {
        if (this.#resourceVersion === '' && !this.#isWatchListServed) await this.#readPages()
        else await this.#watch()
      } catch (error) {
        if (this.#isClosed) return
        await this.#recover(error)
      }
    }
  }

  async #recover(error: unknown): Promise<void> {
    this.#errors += 1
    if (isExpired(error) && !this.#isExpiredAnew) {
      this.#isExpiredAnew = true
      this.#resourceVersion = ''
      this.#events.watchExpired(this.#name)
      return
    }
    if (isExpired(error)) this.#resourceVersion = ''
    if (this.#isRefusalOfWatchList(error)) {
      this.#isWatchListServed = false
      this.#events.watchListMissing(this.#name)
      return
    }
    await this.#wait(error)
  }

  #isRefusalOfWatchList(error: unknown): boolean {
    return this.#resourceVersion === '' && this.#isWatchListServed && isTerminal(error)
  }

  async #wait(error: unknown): Promise<void> {
    const { clock } = this.#options
    const waitMs = Math.round(this.#pace.fail(error, clock.now()))
    const isFirst = !this.#isFailing
    this.#events.watchFailed({ resource: this.#name, error, waitMs, isFirst })
    this.#isFailing = true
    try {
      await sleep(waitMs, { clock, signal: this.#stop.signal })
    } catch {
      // Closed meanwhile; the loop ends.
    }
  }

  async #readPages(): Promise<void> {
    const { client, resource } = this.#options
    const list = await client.list(resource, { ...this.#selection(), signal: this.#stop.signal })
    const next = new Map<string, Stored<K>>()
    for (const object of list.items) next.set(keyStringOf(object), this.#trim(object))
    this.#replace(next, list.resourceVersion)
  }

  /** Watches until the server ends it: from a complete state that it sends first, or from where the last one ended. */
  async #watch(): Promise<void> {
    const { client, resource, clock } = this.#options
    const isInitial = this.#resourceVersion === ''
    const openedMs = clock.now()
    const watch = await client.watch(resource, this.#watchOptions(isInitial))
    this.#watches += 1
    let isHeard = false
    // The objects of a complete state have no order: nothing of it counts before all of it is there.
    let initial = isInitial ? new Map<string, Stored<K>>() : undefined
    try {
      for await (const event of watch.events) {
        if (this.#isClosed) return
        isHeard = true
        this.#hear()
        if (initial === undefined) this.#take(event)
        else initial = this.#collect(initial, event)
      }
    } finally {
      watch.close()
    }
    if (initial !== undefined) throw endedEarly('before all objects had come')
    if (!isHeard && clock.now() - openedMs < SHORTEST_WATCH_MS) throw endedEarly('at once')
  }

  #watchOptions(isInitial: boolean): WatchOptions {
    return {
      ...this.#selection(),
      resourceVersion: this.#resourceVersion,
      isInitial,
      timeoutSeconds: Math.round(WATCH_SECONDS * (1 + this.#random())),
      idleMs: this.#options.idleMs ?? IDLE_MS,
      signal: this.#stop.signal,
    }
  }

  #selection(): Selection {
    const { namespace, labelSelector, fieldSelector } = this.#options
    return { namespace, labelSelector, fieldSelector }
  }

  /** @returns undefined once the state is complete. */
  #collect(
    initial: Map<string, Stored<K>>,
    event: WatchEvent<T>,
  ): Map<string, Stored<K>> | undefined {
    if (event.type === 'BOOKMARK') {
      if (!event.isInitialEnd) return initial
      this.#replace(initial, event.resourceVersion)
      return undefined
    }
    const key = keyStringOf(event.object)
    if (event.type === 'DELETED') initial.delete(key)
    else initial.set(key, this.#trim(event.object))
    return initial
  }

  #take(event: WatchEvent<T>): void {
    this.#isExpiredAnew = false
    if (event.type === 'BOOKMARK') {
      this.#resourceVersion = event.resourceVersion
      return
    }
    this.#resourceVersion = event.object.metadata.resourceVersion
    const object = this.#trim(event.object)
    this.#tell(event.type === 'DELETED' ? this.#store.remove(object) : this.#store.set(object))
  }

  #replace(next: ReadonlyMap<string, Stored<K>>, resourceVersion: string): void {
    if (this.#isClosed) return
    this.#lists += 1
    this.#resourceVersion = resourceVersion
    this.#hear()
    this.#tell(this.#store.replace(next, !this.#hasSynced))
    if (this.#hasSynced || this.#isClosed) return
    this.#hasSynced = true
    this.#options.onSynced?.()
  }

  #hear(): void {
    this.#heardMs = this.#options.clock.now()
    if (!this.#isFailing) return
    this.#isFailing = false
    this.#events.watchRecovered(this.#name, this.#pace.failures)
  }

  #tell(events: readonly ReflectorEvent<K>[]): void {
    for (const event of events) {
      if (this.#isClosed) return
      try {
        this.#options.onEvent(event)
      } catch (error) {
        const { key, type } = event
        this.#events.handlerFailed({ resource: this.#name, key, type, error })
      }
    }
  }
}

function endedEarly(when: string): KubeError {
  return noAnswer('NoConnection', `the watch ended ${when}`)
}
