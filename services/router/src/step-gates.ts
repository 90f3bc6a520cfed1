import { ReadyGate } from '@tutti/tensor'

/** Where decoupled steps wait while the steps after them have many of their responses to finish with. */
export class StepGates {
  readonly #gates = new Map<number, ReadyGate>()

  wait(step: number): Promise<void> {
    const gate = this.#gates.get(step) ?? new ReadyGate()
    this.#gates.set(step, gate)
    return gate.wait()
  }

  /** Lets those go on that have to wait no more. */
  open(isAhead: (step: number) => boolean): void {
    for (const [step, gate] of this.#gates) {
      if (isAhead(step)) continue
      this.#gates.delete(step)
      gate.open()
    }
  }
}
