import type { Priority } from './workqueue.ts'

export interface KeyLanesOptions {
  /** Which lane a key belongs to. */
  readonly of: (key: string) => string
  /** Keys of one lane that are processed at the same time. */
  readonly most: number
  /**
   * Keys of all lanes: those that have any share them evenly, each at least one. A share that shrinks or grows, as there are more
   * or fewer lanes, counts from the next key on that ends. Default: no bound.
   */
  readonly mostInAll?: number
}

type ByPriority = Readonly<Record<Priority, Set<string>>>

interface Lane {
  readonly taken: Set<string>
  /** Keys that have a place and were not taken yet. */
  readonly woken: ByPriority
  readonly held: ByPriority
}

/**
 * Which keys of a lane are processed, and which are held until one of those has ended. A place that becomes free is kept for the
 * key that was held longest; others go before it only if they are of a higher priority. Nothing is kept of a lane without keys.
 */
export class KeyLanes {
  readonly #o: KeyLanesOptions
  readonly #lanes = new Map<string, Lane>()

  constructor(o: KeyLanesOptions) {
    this.#o = o
  }

  /** @returns false if the lane is full: the key is held, until `leave` of another returns it. */
  enter(key: string, priority: Priority): boolean {
    const name = this.#o.of(key)
    const lane = this.#lanes.get(name) ?? newLane()
    this.#lanes.set(name, lane)
    const { taken, woken, held } = lane
    const isKept = woken.high.delete(key)
    const wasWoken = woken.low.delete(key) || isKept
    const most = wasWoken ? this.#o.most : this.#most
    if (usedOf(lane, wasWoken ? 'high' : priority) < most) {
      held.high.delete(key)
      held.low.delete(key)
      taken.add(key)
      return true
    }
    hold(lane, key, { priority, isFirst: wasWoken })
    return false
  }

  /** @returns those that were held, and may try again; none for a key that has left before. */
  leave(key: string): readonly string[] {
    const name = this.#o.of(key)
    const lane = this.#lanes.get(name)
    if (lane === undefined || !lane.taken.delete(key)) return []
    const next: string[] = []
    for (const priority of ['high', 'low'] as const) {
      for (const one of lane.held[priority]) {
        if (usedOf(lane, priority) >= this.#most) break
        lane.held[priority].delete(one)
        lane.woken[priority].add(one)
        next.push(one)
      }
    }
    if (usedOf(lane, 'low') === 0) this.#lanes.delete(name)
    return next
  }

  /** Forgets those that are not processed. */
  drop(): void {
    for (const { woken, held } of this.#lanes.values()) {
      for (const keys of [woken.high, woken.low, held.high, held.low]) keys.clear()
    }
  }

  /** Of one lane, as many lanes as there are. */
  get #most(): number {
    const { most, mostInAll = Number.POSITIVE_INFINITY } = this.#o
    return Math.min(most, Math.max(1, Math.floor(mostInAll / this.#lanes.size)))
  }
}

function newLane(): Lane {
  return {
    taken: new Set(),
    woken: { high: new Set(), low: new Set() },
    held: { high: new Set(), low: new Set() },
  }
}

/** Places of a lane that a key of that priority does not get. */
function usedOf({ taken, woken }: Lane, priority: Priority): number {
  return taken.size + woken.high.size + (priority === 'low' ? woken.low.size : 0)
}

/** @param o.isFirst - it had its turn and lost it to a higher priority: the next turn is its own. */
function hold(
  { held }: Lane,
  key: string,
  o: { readonly priority: Priority; readonly isFirst: boolean },
): void {
  const keys = held[o.priority]
  // It may have been held before its priority was raised.
  if (o.priority === 'high') held.low.delete(key)
  if (!o.isFirst) {
    keys.add(key)
    return
  }
  const others = [...keys]
  keys.clear()
  for (const one of [key, ...others]) keys.add(one)
}
