import { ServeError } from '@tutti/errors'

/** A resource that an instance wants while it executes. */
export interface WantedResource {
  readonly name: string
  /** One count for all devices; else each device has its own. */
  readonly global: boolean
  readonly count: number
}

/** How an instance takes its turn. */
export interface LimitedInstance {
  readonly resources: readonly WantedResource[]
  /** 1 is the most frequent turn; an instance of priority 2 gets half of it. 0 is 1. */
  readonly priority: number
  /** The GPU, or 0 for the CPU, as Triton numbers them. */
  readonly device: number
}

/** A resource that the command line counts. */
export interface ResourceCount {
  readonly name: string
  readonly count: number
  /** Absent for every device. */
  readonly device?: number
}

/** One count, of all devices or of one. */
interface Pool {
  readonly name: string
  readonly isGlobal: boolean
  /** Undefined: the most that a registered instance wants. */
  readonly given: number | undefined
  readonly wanted: Set<number[]>
  used: number
}

/** An instance that is registered. */
class Turn {
  readonly needs: readonly (readonly [Pool, number])[]
  readonly weight: number
  wake = (): void => {}
  /** Where it stands in the order; it is served before those with a larger one. */
  tag = 0
  /** The tag after its last turn. */
  next = 0
  isWaiting = false
  isExecuting = false
  /** Its model has asked since it was woken. */
  hasAsked = false

  constructor(needs: Turn['needs'], weight: number) {
    this.needs = needs
    this.weight = weight
  }
}

/** The instances of one model version at the limiter. */
export interface InstanceLimits {
  /** `wake` is called when an instance that waits may begin. */
  onTurn(wake: () => void): void
  /** True if the instance may begin now; else it waits, and its model is woken when it may. */
  mayBegin(instance: number): boolean
  begin(instance: number): void
  end(instance: number): void
  /** Gives everything back; nothing of the model executes any longer. */
  close(): void
}

/**
 * Triton's rate limiter: an instance executes only while the resources that it wants are free. Those that wait are served by
 * priority, in start-time fair queueing: each turn moves an instance back by its priority, and one that was idle joins at where
 * the others are. What the first of them cannot get yet, nobody behind it takes, so that a large want does not starve.
 */
export class RateLimiter {
  readonly #given: readonly ResourceCount[]
  readonly #pools = new Map<string, Pool>()
  /** Those that wait, in order of arrival. */
  readonly #waiting = new Set<Turn>()
  /** The tag of the last turn that began. */
  #now = 0
  #willServe = false

  /** @param given - counts that do not follow from what instances want. Names in any case. */
  constructor(given: readonly ResourceCount[]) {
    this.#given = given
  }

  /**
   * Registers the instances of a model version, in their order.
   *
   * @throws ServeError CONFIG_INVALID with Triton's text if an instance wants more than there is, or a resource as a global one that
   * others want for each device.
   */
  register(model: string, instances: readonly LimitedInstance[]): InstanceLimits {
    for (const instance of instances) {
      for (const resource of instance.resources) this.#check(model, instances, instance, resource)
    }
    const counts: [Pool, number[]][] = []
    const turns = instances.map(({ resources, priority, device }) => {
      const needs = [...mostByPool(resources.map((one) => [this.#pool(one, device), one.count]))]
      for (const [pool, count] of needs) counts.push([pool, hold(pool, count)])
      return new Turn(needs, Math.max(1, priority))
    })
    return {
      onTurn: (wake) => {
        for (const turn of turns) turn.wake = wake
      },
      mayBegin: (instance) => this.#mayBegin(turnAt(turns, instance)),
      begin: (instance) => this.#begin(turnAt(turns, instance)),
      end: (instance) => this.#end(turnAt(turns, instance)),
      close: () => {
        for (const turn of turns) {
          this.#leave(turn)
          this.#end(turn)
        }
        for (const [pool, held] of counts) pool.wanted.delete(held)
        this.#forget()
      },
    }
  }

  /** The amount taken of each resource, and of how much. */
  get usage(): readonly { readonly name: string; readonly used: number; readonly count: number }[] {
    return [...this.#pools.values()].map((pool) => ({
      name: pool.name,
      used: pool.used,
      count: countOf(pool),
    }))
  }

  #check(
    model: string,
    instances: readonly LimitedInstance[],
    { resources, device }: LimitedInstance,
    { name, global: isGlobal }: WantedResource,
  ): void {
    const key = name.toLowerCase()
    const details = { model, field: 'instance_group.rate_limiter.resources' }
    const others = [...this.#pools.values()].filter((pool) => pool.name === key)
    const own = instances.flatMap((one) => one.resources)
    const isMixed =
      others.some((pool) => pool.isGlobal !== isGlobal) ||
      own.some((one) => one.name.toLowerCase() === key && one.global !== isGlobal)
    if (isMixed) {
      const text = `Resource "${name}" is present as both global and device-specific resource in the model configuration.`
      throw new ServeError('CONFIG_INVALID', text, { details })
    }
    const given = this.#givenFor(key, isGlobal, device)
    const same = resources.filter((one) => one.name.toLowerCase() === key)
    const wanted = Math.max(...same.map((one) => one.count))
    if (given === undefined || wanted <= given) return
    const text = `Resource count for "${name}" is limited to ${given} which will prevent scheduling of one or more model instances, the minimum required count is ${wanted}`
    throw new ServeError('CONFIG_INVALID', text, { details })
  }

  /** A count for the device counts more than one for all. */
  #givenFor(key: string, isGlobal: boolean, device: number): number | undefined {
    const named = this.#given.filter(({ name }) => name.toLowerCase() === key)
    const own = isGlobal ? undefined : named.findLast((one) => one.device === device)
    // The device of a global resource is ignored.
    const all = named.findLast((one) => isGlobal || one.device === undefined)
    return (own ?? all)?.count
  }

  #pool({ name, global: isGlobal }: WantedResource, device: number): Pool {
    const lower = name.toLowerCase()
    const key = JSON.stringify(isGlobal ? [lower] : [lower, device])
    const known = this.#pools.get(key)
    if (known !== undefined) return known
    const given = this.#givenFor(lower, isGlobal, device)
    const pool: Pool = { name: lower, isGlobal, given, wanted: new Set(), used: 0 }
    this.#pools.set(key, pool)
    return pool
  }

  #mayBegin(turn: Turn): boolean {
    if (turn.needs.length === 0) return true
    turn.hasAsked = true
    if (!turn.isWaiting) turn.tag = Math.max(this.#now, turn.next)
    if (fits(turn) && !this.#isBehind(turn)) {
      this.#leave(turn)
      return true
    }
    turn.isWaiting = true
    this.#waiting.add(turn)
    return false
  }

  /** It may have nothing to execute after all: then those go on that waited behind it. */
  #leave(turn: Turn): void {
    if (!turn.isWaiting) return
    turn.isWaiting = false
    this.#waiting.delete(turn)
    this.#serveSoon()
  }

  /** Whether one that comes before it waits for the same. */
  #isBehind(turn: Turn): boolean {
    for (const other of this.#waiting) {
      if (other === turn || !isBefore(other, turn)) continue
      if (other.needs.some(([pool]) => turn.needs.some(([own]) => own === pool))) return true
    }
    return false
  }

  #begin(turn: Turn): void {
    turn.isExecuting = true
    this.#now = Math.max(this.#now, turn.tag)
    turn.next = turn.tag + turn.weight
    for (const [pool, count] of turn.needs) pool.used += count
  }

  #end(turn: Turn): void {
    if (!turn.isExecuting) return
    turn.isExecuting = false
    for (const [pool, count] of turn.needs) pool.used -= count
    this.#serveSoon()
  }

  /** After the model whose instance has ended has asked again: else it would come after all who wait. */
  #serveSoon(): void {
    if (this.#willServe) return
    this.#willServe = true
    queueMicrotask(() => {
      this.#willServe = false
      this.#serve()
    })
  }

  /** Wakes those whose turn it is. One that no longer has anything to execute lets the next one go. */
  #serve(): void {
    const blocked = new Set<Pool>()
    for (const turn of [...this.#waiting].toSorted((a, b) => a.tag - b.tag)) {
      if (!turn.isWaiting) continue
      const isFree = fits(turn) && turn.needs.every(([pool]) => !blocked.has(pool))
      if (isFree) {
        turn.hasAsked = false
        turn.wake()
        if (!turn.hasAsked) this.#leave(turn)
      }
      if (turn.isWaiting) for (const [pool] of turn.needs) blocked.add(pool)
    }
  }

  /** Forgets the resources that nobody wants any longer, so that they may come back with another reach. */
  #forget(): void {
    for (const [key, pool] of this.#pools) if (pool.wanted.size === 0) this.#pools.delete(key)
    this.#serveSoon()
  }
}

function turnAt(turns: readonly Turn[], instance: number): Turn {
  const turn = turns[instance]
  if (turn === undefined) throw new ServeError('INTERNAL', `bug: there is no instance ${instance}`)
  return turn
}

function hold(pool: Pool, count: number): number[] {
  const held = [count]
  pool.wanted.add(held)
  return held
}

function countOf({ given, wanted }: Pool): number {
  return given ?? Math.max(0, ...[...wanted].flat())
}

function fits({ needs }: Turn): boolean {
  return needs.every(([pool, count]) => pool.used + count <= countOf(pool))
}

function isBefore(a: Turn, b: Turn): boolean {
  return a.tag < b.tag || (a.tag === b.tag && a.isWaiting && !b.isWaiting)
}

/** Finds how much is wanted of each pool: of a resource that comes twice the larger count, as in Triton. */
function mostByPool(needs: readonly (readonly [Pool, number])[]): ReadonlyMap<Pool, number> {
  const most = new Map<Pool, number>()
  for (const [pool, count] of needs) most.set(pool, Math.max(count, most.get(pool) ?? 0))
  return most
}
