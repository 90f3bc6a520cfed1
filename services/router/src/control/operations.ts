/**
 * Which of several operations on a name came last. Loads take time between their begin and their effect: one whose name was unloaded
 * meanwhile must not bring it back, and one that comes late must not take back what a newer one did.
 */
export class Operations {
  readonly #unloaded = new Map<string, number>()
  readonly #loaded = new Map<string, number>()
  #last = 0
  #open = 0

  /** A load begins, newer than all before. Its `end` must follow. */
  begin(): number {
    this.#open += 1
    this.#last += 1
    return this.#last
  }

  end(): void {
    this.#open -= 1
    if (this.#open > 0) return
    // Only loads that are open could come too late.
    this.#unloaded.clear()
    this.#loaded.clear()
  }

  unload(name: string): void {
    this.#last += 1
    if (this.#open > 0) this.#unloaded.set(name, this.#last)
  }

  /** True if the name was unloaded since the load began. */
  isOvertaken(name: string, load: number): boolean {
    return (this.#unloaded.get(name) ?? 0) > load
  }

  /** The load takes effect on the name. @returns false if a newer one did already. */
  apply(name: string, load: number): boolean {
    if ((this.#loaded.get(name) ?? 0) > load) return false
    this.#loaded.set(name, load)
    return true
  }
}
