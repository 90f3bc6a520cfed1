/**
 * Tells which of several operations on a name came last. A load takes time between its begin and its effect. It must not bring
 * back a name that was unloaded meanwhile, and it must not undo a newer load.
 */
export class Operations {
  readonly #unloaded = new Map<string, number>()
  readonly #loaded = new Map<string, number>()
  #last = 0
  #open = 0

  /**
   * Begins a load, which is newer than all operations before. The caller must call `end` once for it.
   *
   * @returns the number of the load.
   */
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

  /** Tells whether a name was unloaded since a load began. */
  isOvertaken(name: string, load: number): boolean {
    return (this.#unloaded.get(name) ?? 0) > load
  }

  /**
   * Notes that a load takes effect on a name.
   *
   * @returns false if a newer load already took effect.
   */
  apply(name: string, load: number): boolean {
    if ((this.#loaded.get(name) ?? 0) > load) return false
    this.#loaded.set(name, load)
    return true
  }
}
