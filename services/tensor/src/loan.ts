/** Memory that responses view. It is freed when its last holder gives it back. The garbage collector never frees it. */
export class Loan {
  readonly #free: () => void
  #holders = 1

  /** Makes a loan that its maker holds until `end`. @param free - called when the last holder has given the memory back. */
  constructor(free: () => void) {
    this.#free = free
  }

  /** Adds a holder, as `retain` of `Lent` does. A second call of the returned function has no effect. */
  readonly retain = (): (() => void) => {
    this.#holders += 1
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      this.end()
    }
  }

  /** Gives up the hold of the maker. Called once. */
  end(): void {
    this.#holders -= 1
    if (this.#holders === 0) this.#free()
  }
}
