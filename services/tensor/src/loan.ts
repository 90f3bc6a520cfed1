/** Memory that responses view. It is freed when its last holder gives it back, and never by the collector. */
export class Loan {
  readonly #free: () => void
  #holders = 1

  /** The one that makes it holds it until `end`. */
  constructor(free: () => void) {
    this.#free = free
  }

  /** As Lent's. To give back twice has no effect. */
  readonly retain = (): (() => void) => {
    this.#holders += 1
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      this.end()
    }
  }

  /** The one that made it holds it no more. */
  end(): void {
    this.#holders -= 1
    if (this.#holders === 0) this.#free()
  }
}
