import { hash } from 'node:crypto'
import type { ServedByRouter } from '@tutti/api'
import { type Clock, type Logger, systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Stored } from '@tutti/kube'
import { KeyedLimiter } from '../runtime/keyed-limiter.ts'
import type { ManagedController } from '../runtime/manager.ts'
import { routersCannotBeAsked, servedModelsChanged } from './log-events.ts'
import type { PodAddress, PodClient } from './pod-client.ts'
import { isReady, type PodState, podAddressOf } from './pod-state.ts'

/** The answer of one ready router, or the error if it did not answer. */
export type RouterView =
  | { readonly pod: string; readonly served: ServedByRouter }
  | { readonly pod: string; readonly error: ServeError }

export interface RouterViewsOptions {
  readonly client: PodClient
  /** Function that lists all router pods of a namespace, ready or not. */
  readonly routersOf: (namespace: string) => readonly Stored<PodState>[]
  /** Function that lists the namespaces with router pods. */
  readonly namespaces: () => Iterable<string>
  /** Callback when a poll finds that a router of the namespace serves something else than before, or no longer answers. */
  readonly onChange: (namespace: string) => void
  readonly clock?: Clock
  readonly log: Logger
  /** Milliseconds between two polls of all routers; default 10 s. */
  readonly pollMs?: number
}

interface Answer {
  readonly view: RouterView
  readonly at: number
  /** Time at which the router itself said it: before `at` if the router has not answered since. */
  readonly saidAt: number
  /** Digest of the answer, to tell changes. */
  readonly digest: string
  /** Length of the answer as JSON. */
  readonly length: number
}

/** Namespaces that are asked at the same time: routers of one that are silent do not keep the others waiting. */
const NAMESPACES_AT_ONCE = 32
/**
 * A ready router that does not answer counts as it last was for so long, about three polls: one answer that is late or lost says
 * nothing about the router. Kubernetes takes one that is gone out of the ready ones sooner.
 */
const MOST_SILENT_MS = 30_000
/**
 * Characters of all different answers of a namespace together. Its routers all say the same, but for moments; what is not a
 * router of ours can say anything, and it is all kept.
 */
const MOST_KEPT = 8 * 2 ** 20

/**
 * Asks ready routers what they serve, on behalf of all controllers. Controllers share recent answers. All routers are also polled
 * at intervals, so that a router that loses a model is noticed.
 */
export class RouterViews implements ManagedController {
  readonly name = 'router-polling'
  readonly #options: RouterViewsOptions
  readonly #clock: Clock
  readonly #answers = new Map<string, Answer>()
  readonly #asking = new Map<string, Promise<Answer>>()
  /** Routers that said something else since the last poll, in a poll or not. */
  readonly #changed = new Set<string>()
  readonly #limiter = new KeyedLimiter({ total: NAMESPACES_AT_ONCE })
  /** Running polls, by namespace. */
  readonly #polls = new Map<string, Promise<void>>()
  readonly #closing = new AbortController()
  #stopTimer: () => void = () => {}

  constructor(o: RouterViewsOptions) {
    this.#options = o
    this.#clock = o.clock ?? systemClock
  }

  /** Begins to poll. */
  start(): void {
    this.#stopTimer = this.#clock.setTimer(this.#options.pollMs ?? 10_000, () => {
      this.start()
      this.#forgetOthers()
      for (const namespace of this.#options.namespaces()) this.#beginPoll(namespace)
    })
  }

  /**
   * Returns the answers of all ready routers of a namespace, sorted by pod; empty if none is ready. A router that does not answer
   * keeps its last answer for about 30 s, then gives an error.
   *
   * @param o.maxAgeMs - age up to which a known answer counts, in milliseconds. Older ones are asked for again.
   * @throws the signal's reason if it aborts.
   */
  async look(
    namespace: string,
    o: { readonly maxAgeMs: number; readonly signal: AbortSignal },
  ): Promise<readonly RouterView[]> {
    const looks = this.#readyRouters(namespace).map(async ({ id, address }) => {
      const known = this.#answers.get(id)
      if (known !== undefined && this.#clock.now() - known.at <= o.maxAgeMs) return known.view
      return (await this.#ask(id, address)).view
    })
    const views = await Promise.all(looks)
    o.signal.throwIfAborted()
    return views.toSorted((one, other) => (one.pod < other.pod ? -1 : 1))
  }

  /** Does nothing, because reconciles that still run may call `look`. */
  stop(): void {}

  abort(): void {
    this.#closing.abort(new ServeError('SERVER_STOPPING', 'the operator is stopping'))
    this.#stopTimer()
  }

  async drained(): Promise<void> {
    if (!this.#closing.signal.aborted) return
    await Promise.all(this.#polls.values())
    await Promise.allSettled(this.#asking.values())
  }

  /** Begins a poll of a namespace, unless its last poll still runs. */
  #beginPoll(namespace: string): void {
    if (this.#polls.has(namespace)) return
    const poll = this.#limiter.run(namespace, () => this.#poll(namespace))
    this.#polls.set(
      namespace,
      poll.finally(() => this.#polls.delete(namespace)),
    )
  }

  async #poll(namespace: string): Promise<void> {
    if (this.#closing.signal.aborted) return
    const routers = this.#readyRouters(namespace)
    await Promise.all(
      routers.map(async ({ id, address }) => {
        const { view } = await this.#ask(id, address)
        if ('error' in view) routersCannotBeAsked(this.#options.log, namespace, view)
      }),
    )
    const changed = routers.filter(({ id }) => this.#changed.delete(id))
    if (changed.length === 0 || this.#closing.signal.aborted) return
    servedModelsChanged(this.#options.log, namespace)
    this.#options.onChange(namespace)
  }

  /** Forgets routers that are gone, or not ready. */
  #forgetOthers(): void {
    const ready = [...this.#options.namespaces()].flatMap((name) => this.#readyRouters(name))
    const known = new Set(ready.map(({ id }) => id))
    for (const id of this.#answers.keys()) {
      if (known.has(id)) continue
      this.#answers.delete(id)
      this.#changed.delete(id)
    }
  }

  /** Callers share the answer of a question that is under way. */
  #ask(id: string, address: PodAddress): Promise<Answer> {
    const asking = this.#asking.get(id) ?? this.#put(id, address)
    this.#asking.set(id, asking)
    return asking
  }

  async #put(id: string, address: PodAddress): Promise<Answer> {
    const at = this.#clock.now()
    try {
      const view = await this.#view(address)
      const before = this.#answers.get(id)
      const isKept =
        'error' in view &&
        before !== undefined &&
        'served' in before.view &&
        at - before.saidAt < MOST_SILENT_MS
      const answer = isKept ? { ...before, at } : this.#toAnswer(id, view, { at, address })
      if (before !== undefined && before.digest !== answer.digest) this.#changed.add(id)
      this.#answers.set(id, answer)
      return answer
    } finally {
      this.#asking.delete(id)
    }
  }

  #toAnswer(
    id: string,
    view: RouterView,
    {
      at,
      address: { namespace, name: pod },
    }: { readonly at: number; readonly address: PodAddress },
  ): Answer {
    const said = 'error' in view ? view.error.reason : JSON.stringify(view.served)
    const told = { digest: hash('sha256', said, 'hex'), length: said.length }
    const answer: Answer = { view, at, saidAt: at, ...told }
    const others = this.#options.routersOf(namespace).flatMap(({ metadata: { uid } }) => {
      const other = uid === id ? undefined : this.#answers.get(uid)
      return other ?? []
    })
    const same = others.find(({ digest }) => digest === answer.digest)?.view
    // One copy of the same answer.
    if (same !== undefined && 'served' in same) {
      return { ...answer, view: { pod, served: same.served } }
    }
    const kept = new Map(others.map(({ digest, length }) => [digest, length]))
    const sum = [...kept.values()].reduce((all, length) => all + length, answer.length)
    if (sum <= MOST_KEPT) return answer
    const text = `pod "${pod}": the routers of the namespace give different answers, want at most ${MOST_KEPT} characters in all`
    const error = new ServeError('MESSAGE_TOO_LARGE', text)
    return { view: { pod, error }, at, saidAt: at, digest: error.reason, length: 0 }
  }

  async #view(address: PodAddress): Promise<RouterView> {
    const { signal } = this.#closing
    try {
      return {
        pod: address.name,
        served: await this.#options.client.servedByRouter(address, { signal }),
      }
    } catch (error) {
      return { pod: address.name, error: ServeError.from(error) }
    }
  }

  #readyRouters(namespace: string): readonly { id: string; address: PodAddress }[] {
    return this.#options.routersOf(namespace).flatMap((pod) => {
      const address = podAddressOf(pod)
      return address === undefined || !isReady(pod) ? [] : [{ id: pod.metadata.uid, address }]
    })
  }
}
