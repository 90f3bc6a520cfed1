import { RESPONSE_WINDOW, ReadyGate } from '@tutti/tensor'

interface Turn {
  readonly waiting: (() => void)[]
  readonly gate: ReadyGate
  isEnded: boolean
  next: Turn | undefined
}

/** A request's place in the order of responses. */
export interface OrderedTurn {
  /** Runs `deliver` now if it is this request's turn, else once it is. */
  deliver(deliver: () => void): void
  /** Undefined if a further response would not wait, or few do; else a promise that it is this request's turn, or its end. */
  ready(): Promise<void> | undefined
  /** After the last response: the next request may answer. */
  end(): void
}

/** Keeps responses in the order in which their requests began to execute (`preserve_ordering`). */
export class ResponseOrder {
  #head: Turn | undefined
  #tail: Turn | undefined

  /** Takes the next place. Every turn must be ended, or nothing behind it is ever delivered. */
  claim(): OrderedTurn {
    const turn: Turn = { waiting: [], gate: new ReadyGate(), isEnded: false, next: undefined }
    if (this.#tail === undefined) this.#head = turn
    else this.#tail.next = turn
    this.#tail = turn
    return {
      deliver: (deliver) => {
        if (this.#head === turn) deliver()
        else turn.waiting.push(deliver)
      },
      ready: () => {
        const isNear = this.#head === turn || turn.waiting.length < RESPONSE_WINDOW.responses
        return isNear || turn.isEnded ? undefined : turn.gate.wait()
      },
      end: () => {
        turn.isEnded = true
        turn.gate.open()
        if (this.#head === turn) this.#advance()
      },
    }
  }

  #advance(): void {
    while (this.#head?.isEnded) {
      this.#head = this.#head.next
      if (this.#head === undefined) this.#tail = undefined
      else {
        for (const deliver of this.#head.waiting.splice(0)) deliver()
        this.#head.gate.open()
      }
    }
  }
}
