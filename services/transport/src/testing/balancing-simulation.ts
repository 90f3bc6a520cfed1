import { type Replica, revisionKey } from '../replica-places.ts'
import { UNWEIGHED, type Work } from '../replica-work.ts'
import { StepDirectory } from '../step-directory.ts'

const SERVED = { model: 'm', version: 1, revision: 'r' }
const HEARTBEAT_MS = 250

export interface BalancingScenario {
  /** By replica: what its executions take over those of others. Each executes one request at a time. */
  readonly slowness: readonly number[]
  /** They know only their own requests, and what replicas announce. */
  readonly routers: number
  /** Share of requests, milliseconds of execution, bytes. */
  readonly mix: readonly (readonly [share: number, ms: number, bytes: number])[]
  /** Share of what all replicas can do. */
  readonly load: number
  readonly requests: number
  /** By outstanding work, else by requests in flight alone. */
  readonly isWeighed: boolean
  /** 0 or above, below 1. */
  readonly random: () => number
}

interface Sent {
  readonly at: number
  readonly ms: number
  readonly router: StepDirectory
  readonly replica: Replica
  readonly work: Work
}

/** Plays routers and replicas on a virtual clock. Executions vary by a tenth. */
export class BalancingSimulation {
  /** By replica: requests that it has answered. */
  readonly answered: number[]
  readonly #context: BalancingScenario
  readonly #routers: readonly StepDirectory[]
  readonly #queues: Sent[][]
  readonly #latencies: number[] = []
  readonly #events: { readonly at: number; readonly happen: () => void }[] = []
  #now = 0
  #sent = 0

  constructor(o: BalancingScenario) {
    this.#context = o
    this.#routers = Array.from({ length: o.routers }, () => new StepDirectory())
    this.#queues = o.slowness.map(() => [])
    this.answered = o.slowness.map(() => 0)
  }

  /** @returns the mean and the 99th percentile of the latencies, in milliseconds, without those of the first tenth. */
  run() {
    this.#beat()
    this.#arrive()
    for (let next = this.#events.pop(); next !== undefined; next = this.#events.pop()) {
      this.#now = next.at
      next.happen()
    }
    const settled = this.#latencies.slice(this.#latencies.length / 10).toSorted((a, b) => a - b)
    const meanMs = settled.reduce((sum, ms) => sum + ms, 0) / settled.length
    return { meanMs, p99Ms: settled[Math.floor(settled.length * 0.99)] ?? 0 }
  }

  /** Sum of what is in flight at all replicas, as the routers count it. */
  get inFlight(): number {
    const all = this.#routers.flatMap(({ places }) => places.byRevision.get(revisionKey(SERVED)))
    return all.reduce((sum, one) => sum + (one?.inFlight ?? 0) + Math.abs(one?.workUs ?? 0), 0)
  }

  #beat(): void {
    for (const router of this.#routers) {
      for (const [i, { length }] of this.#queues.entries()) {
        const load = { inFlight: length, queued: Math.max(0, length - 1), freeBytes: 1 }
        const freeSlots = length === 0 ? 1 : 0
        router.announce({ replica: String(i) }, [SERVED], { ...load, freeSlots })
      }
    }
    if (this.#sent < this.#context.requests) this.#after(HEARTBEAT_MS, () => this.#beat())
  }

  #arrive(): void {
    const { mix, random, slowness, load } = this.#context
    if (this.#sent++ >= this.#context.requests) return
    const meanMs = mix.reduce((sum, [share, ms]) => sum + share * ms, 0)
    const perMs = (load * slowness.reduce((sum, one) => sum + 1 / one, 0)) / meanMs
    let rest = random()
    const [, ms, bytes] = mix.find(([share]) => (rest -= share) < 0) ?? [0, 1, 1]
    this.#send(ms, bytes)
    this.#after(-Math.log(1 - random()) / perMs, () => this.#arrive())
  }

  #send(ms: number, bytes: number): void {
    const { isWeighed, random } = this.#context
    const router = this.#routers[Math.floor(random() * this.#routers.length)]
    if (router === undefined) return
    const { places } = router
    const inputs = [{ data: { byteLength: bytes } as Uint8Array }]
    const work = isWeighed ? places.work.expect(revisionKey(SERVED), inputs) : UNWEIGHED
    const replica = places.acquire(SERVED, isWeighed ? { workUs: work.us } : {})
    if (replica === undefined) return
    const i = Number(replica.address.replica)
    const queue = this.#queues[i] ?? []
    queue.push({ at: this.#now, ms, router, replica, work })
    if (queue.length === 1) this.#execute(i)
  }

  #execute(i: number): void {
    const [first] = this.#queues[i] ?? []
    if (first === undefined) return
    const ms = first.ms * (this.#context.slowness[i] ?? 1) * (0.9 + 0.2 * this.#context.random())
    this.#after(ms, () => {
      const { router, replica, work, at } = first
      this.#queues[i]?.shift()
      replica.inFlight -= 1
      replica.workUs -= work.us
      const none = { queueNs: 0, computeInputNs: 0, computeOutputNs: 0, transferNs: 0 }
      const pin = { key: revisionKey(SERVED) }
      router.places.work.learn({ pin, work, replica }, { ...none, computeInferNs: ms * 1e6 })
      this.#latencies.push(this.#now - at)
      this.answered[i] = (this.answered[i] ?? 0) + 1
      this.#execute(i)
    })
  }

  /** Events are kept with the next one last. */
  #after(ms: number, happen: () => void): void {
    const at = this.#now + ms
    let low = 0
    let high = this.#events.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#events[middle]?.at ?? 0) > at) low = middle + 1
      else high = middle
    }
    this.#events.splice(low, 0, { at, happen })
  }
}
