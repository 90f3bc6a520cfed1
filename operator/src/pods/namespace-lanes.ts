export interface NamespaceLanesOptions<T> {
  /** Items of one namespace that are worked on at the same time. */
  readonly perNamespace: number
  /** Items of all namespaces together; well above `perNamespace`, so that no namespace can take them all. */
  readonly total: number
  /** Does not throw. */
  readonly work: (item: T) => Promise<void>
}

interface Line<T> {
  /** What has not begun; the next one is last. */
  readonly rest: T[]
  going: number
}

/**
 * Works on the items of namespaces, each namespace in turn: one whose items take long holds up neither the items of others nor
 * the end of a round, as there is none. Nothing is kept of a namespace without items.
 */
export class NamespaceLanes<T> {
  readonly #o: NamespaceLanesOptions<T>
  readonly #lines = new Map<string, Line<T>>()
  /** Namespaces that may begin another item; the one whose turn it is comes first. */
  readonly #turns = new Set<string>()
  readonly #idle: (() => void)[] = []
  #going = 0

  constructor(o: NamespaceLanesOptions<T>) {
    this.#o = o
  }

  /** Works on all of them, in this order; without effect while some of the namespace are left from before. */
  offer(namespace: string, items: readonly T[]): void {
    if (this.#lines.has(namespace) || items.length === 0) return
    this.#lines.set(namespace, { rest: items.toReversed(), going: 0 })
    this.#turns.add(namespace)
    this.#begin()
  }

  /** Resolves when nothing is left. */
  async idle(): Promise<void> {
    if (this.#lines.size === 0) return
    await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  #begin(): void {
    for (const namespace of this.#turns) {
      if (this.#going >= this.#o.total) return
      this.#turns.delete(namespace)
      const line = this.#lines.get(namespace)
      const item = line?.rest.pop()
      if (line === undefined || item === undefined) continue
      line.going += 1
      this.#going += 1
      this.#line(namespace, line)
      void this.#o.work(item).finally(() => this.#ended(namespace, line))
    }
  }

  #ended(namespace: string, line: Line<T>): void {
    line.going -= 1
    this.#going -= 1
    if (line.going === 0 && line.rest.length === 0) this.#lines.delete(namespace)
    this.#line(namespace, line)
    this.#begin()
    if (this.#lines.size > 0) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  /** Puts a namespace behind the others if it may begin another item. */
  #line(namespace: string, { rest, going }: Line<T>): void {
    if (rest.length > 0 && going < this.#o.perNamespace) this.#turns.add(namespace)
  }
}
