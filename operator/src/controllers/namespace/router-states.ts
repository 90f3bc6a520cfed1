/** Why a namespace has no router, or not the one that is wanted. */
export interface RouterTrouble {
  /** One CamelCase word, for conditions. */
  readonly reason: string
  readonly message: string
  /** True if it ends by itself: nobody has to act. */
  readonly isPassing?: boolean
  /** True if requests go on: routers are ready, and those that are wanted in their place do not come. */
  readonly isServed?: boolean
}

/** What is wrong with routers, by namespace: the controller of namespaces says it, those of Models and Ensembles read it. */
export class RouterStates {
  readonly #troubles = new Map<string, RouterTrouble>()
  readonly #listeners = new Set<(namespace: string) => void>()

  get(namespace: string): RouterTrouble | undefined {
    return this.#troubles.get(namespace)
  }

  set(namespace: string, trouble: RouterTrouble | undefined): void {
    const old = this.#troubles.get(namespace)
    const isSame =
      old?.reason === trouble?.reason &&
      old?.message === trouble?.message &&
      old?.isServed === trouble?.isServed
    if (isSame) return
    if (trouble === undefined) this.#troubles.delete(namespace)
    else this.#troubles.set(namespace, trouble)
    for (const listener of this.#listeners) listener(namespace)
  }

  onChange(listener: (namespace: string) => void): void {
    this.#listeners.add(listener)
  }
}
