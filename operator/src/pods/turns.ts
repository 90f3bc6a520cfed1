export interface TurnsOptions {
  /** Turns of one group that go on at the same time. */
  readonly most: number
  /** Of one group that wait. */
  readonly mostWaiting: number
}

export interface TurnWish {
  readonly group: string
  /** Has one turn at a time. */
  readonly member: string
  readonly signal: AbortSignal
}

interface Waiting {
  readonly member: string
  readonly begin: () => void
}

interface Group {
  /** Members that have their turn. */
  readonly busy: Set<string>
  /** In the order in which they came. */
  readonly waiting: Set<Waiting>
}

/**
 * Gives turns, some of each group and one of each member at a time, first come first served; who waits for its own member alone
 * is passed over. Nothing is kept of a group in which nobody has a turn.
 */
export class Turns {
  readonly #o: TurnsOptions
  readonly #groups = new Map<string, Group>()

  constructor(o: TurnsOptions) {
    this.#o = o
  }

  /** Groups in which somebody has a turn or waits for one. */
  get groups(): number {
    return this.#groups.size
  }

  /**
   * Waits for a turn.
   *
   * @returns what ends it, to be called once; undefined at once if as many wait as may.
   * @throws the signal's reason, as soon as it aborts.
   */
  async take({ group: name, member, signal }: TurnWish): Promise<(() => void) | undefined> {
    signal.throwIfAborted()
    const group = this.#groups.get(name) ?? { busy: new Set(), waiting: new Set() }
    this.#groups.set(name, group)
    if (this.#mayBegin(group, member)) group.busy.add(member)
    else if (group.waiting.size >= this.#o.mostWaiting) return undefined
    else await waitIn(group, member, signal)
    return () => this.#end(name, group, member)
  }

  #mayBegin({ busy }: Group, member: string): boolean {
    return busy.size < this.#o.most && !busy.has(member)
  }

  #end(name: string, group: Group, member: string): void {
    group.busy.delete(member)
    for (const one of group.waiting) {
      if (!this.#mayBegin(group, one.member)) continue
      group.waiting.delete(one)
      group.busy.add(one.member)
      one.begin()
      break
    }
    // Whoever waits, waits for one that is busy.
    if (group.busy.size === 0) this.#groups.delete(name)
  }
}

async function waitIn({ waiting }: Group, member: string, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const one: Waiting = { member, begin: resolve }
  waiting.add(one)
  const onAbort = (): void => {
    if (waiting.delete(one)) reject(signal.reason)
  }
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    await promise
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
