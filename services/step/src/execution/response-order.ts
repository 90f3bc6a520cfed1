import { ServeError } from '@tutti/errors'
import { RESPONSE_WINDOW, ReadyGate, type StepResponse } from '@tutti/tensor'

/** A request's place in the order of responses. */
export class Turn {
  next: Turn | undefined
  isEnded = false
  readonly waiting: (() => void)[] = []
  readonly gate = new ReadyGate()
  readonly #order: ResponseOrder

  constructor(order: ResponseOrder) {
    this.#order = order
  }

  /** Runs `pass` now if it is this request's turn, else once it is. The last outcome ends the turn. */
  deliver(outcome: StepResponse | ServeError, pass: () => void): void {
    const isError = outcome instanceof ServeError
    if (this.#order.isAt(this)) pass()
    else {
      const giveBack = isError ? undefined : outcome.retain?.()
      this.waiting.push(() => {
        pass()
        giveBack?.()
      })
    }
    if (isError || outcome.final) this.end()
  }

  /** Waits for the turn of this request, or its end; undefined if a further response would not wait, or few responses do. */
  ready(): Promise<void> | undefined {
    const isNear = this.#order.isAt(this) || this.waiting.length < RESPONSE_WINDOW.responses
    return isNear || this.isEnded ? undefined : this.gate.wait()
  }

  /** Lets the next request answer, after the last response. */
  end(): void {
    this.isEnded = true
    this.gate.open()
    if (this.#order.isAt(this)) this.#order.advance()
  }
}

/** Keeps responses in the order in which their requests began to execute (`preserve_ordering`). */
export class ResponseOrder {
  #first: Turn | undefined
  #last: Turn | undefined

  /** Takes the next place. Every turn must be ended, or nothing behind it is ever delivered. */
  claim(): Turn {
    const turn = new Turn(this)
    if (this.#last === undefined) this.#first = turn
    else this.#last.next = turn
    this.#last = turn
    return turn
  }

  isAt(turn: Turn): boolean {
    return this.#first === turn
  }

  /** Goes on to the first request that has not ended, and delivers what waits on the way. */
  advance(): void {
    while (this.#first?.isEnded) {
      const turn = this.#first.next
      this.#first = turn
      if (turn === undefined) this.#last = undefined
      else {
        // A reader that leaves at what it is given ends its turn here.
        for (const deliver of turn.waiting.splice(0)) deliver()
        turn.gate.open()
      }
    }
  }
}
