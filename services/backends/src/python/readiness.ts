import { type Frame, OP, plainFrame } from './frames.ts'
import { parseObject } from './wire-response.ts'

/** What a process's model says when it is asked whether it is ready. One question is open at a time. */
export class Readiness {
  readonly #send: (frame: Uint8Array) => void
  #open: PromiseWithResolvers<boolean> | undefined
  #hasEnded = false

  constructor(send: (frame: Uint8Array) => void) {
    this.#send = send
  }

  /** @returns what the model says; false if its process ends before. A model that says nothing is waited for. */
  ask(): Promise<boolean> {
    if (this.#hasEnded) return Promise.resolve(false)
    if (this.#open === undefined) {
      this.#open = Promise.withResolvers()
      this.#send(plainFrame(OP.ASK_READY, 0))
    }
    return this.#open.promise
  }

  /** @returns true if the frame was an answer. @throws ServeError MALFORMED_MESSAGE */
  take(frame: Frame): boolean {
    if (frame.op !== OP.IS_READY) return false
    this.#settle(parseObject(frame.meta.toString())['ready'] === true)
    return true
  }

  /** The process has ended. */
  close(): void {
    this.#hasEnded = true
    this.#settle(false)
  }

  #settle(answer: boolean): void {
    this.#open?.resolve(answer)
    this.#open = undefined
  }
}
