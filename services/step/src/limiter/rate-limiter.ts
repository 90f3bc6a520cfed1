import { ServeError } from '@tutti/errors'

/** Resource that an instance uses while it executes. */
export interface WantedResource {
  readonly name: string
  /** True for one count for all devices; false if each device has a count of its own. */
  readonly global: boolean
  readonly count: number
}

/** Instance that the limiter schedules. */
export interface LimitedInstance {
  readonly resources: readonly WantedResource[]
  /** Priority: 1 has the most frequent turns, and an instance of priority 2 gets half as many. 0 means 1. */
  readonly priority: number
  /** Number of the GPU, or 0 for the CPU, as in Triton. */
  readonly device: number
}

/** Count of a resource from the command line. */
export interface ResourceCount {
  readonly name: string
  readonly count: number
  /** Device of the count; absent for every device. */
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
  /** Position in the order: turns with a smaller tag are served first. */
  tag = 0
  /** The tag after its last turn. */
  next = 0
  isWaiting = false
  isExecuting = false
  /** True if its model has asked since it was woken. */
  hasAsked = false

  constructor(needs: Turn['needs'], weight: number) {
    this.needs = needs
    this.weight = weight
  }
}

/** Limits on the instances of one model version. */
export interface InstanceLimits {
  /** Sets the function that is called when a waiting instance may begin. */
  onTurn(wake: () => void): void
  /** Checks whether an instance may begin now. If not, the instance waits, and `wake` is called when it may. */
  mayBegin(instance: number): boolean
  begin(instance: number): void
  end(instance: number): void
  /** Gives all resources back. No instance of the model may execute any longer. */
  close(): void
}

/**
 * Triton's rate limiter. An instance executes only while its resources are free. Waiting instances are served by priority, in
 * start-time fair queueing: each turn moves an instance back by its priority, and an idle instance joins where the others are.
 * Later instances cannot take resources for which an earlier one waits, so that a large need does not starve.
 */
export class RateLimiter {
  readonly #given: readonly ResourceCount[]
  readonly #pools = new Map<string, Pool>()
  /** Turns that wait, in order of arrival. */
  readonly #waiting = new Set<Turn>()
  /** The tag of the last turn that began. */
  #now = 0
  #willServe = false

  /** Makes a limiter. @param given - counts that replace the largest need of an instance; names in any case. */
  constructor(given: readonly ResourceCount[]) {
    this.#given = given
  }

  /**
   * Registers the instances of a model version, in their order.
   *
   * @throws ServeError CONFIG_INVALID with Triton's text if an instance needs more than there is, or if a resource is global here
   * and counted for each device elsewhere.
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

  /** Amount in use of each resource, and its count. */
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

  /** Returns the given number of a resource. A number for the device overrides one for all devices. */
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

  /** Takes a turn out of the order. If its model has nothing to execute after all, the turns that waited behind it go on. */
  #leave(turn: Turn): void {
    if (!turn.isWaiting) return
    turn.isWaiting = false
    this.#waiting.delete(turn)
    this.#serveSoon()
  }

  /** Tells whether a turn that comes before waits for the same resource. */
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

  /**
   * Serves waiting turns soon, but after the model whose instance has ended could ask again: its turn would else come after all
   * that wait.
   */
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
