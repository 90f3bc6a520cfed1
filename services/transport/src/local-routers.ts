import type { CancelSignal } from '@tutti/errors'
import type { Envelope } from '@tutti/protocol'
import type { TensorRef } from '@tutti/tensor'
import type { LocalBearer } from './local-bearer.ts'
import type { AnswerQuestion, AskOptions, Question, RouterCalls } from './peers.ts'
import type { BearerResponse } from './tensor-bearer.ts'

const NO_FILES: ReadonlyMap<string, Uint8Array> = new Map()

/** The router of the same process, as its step calls it: served at `bearer` under `router`. */
export class LocalRouters implements RouterCalls {
  readonly #bearer: LocalBearer
  readonly #router: string
  readonly #answer: AnswerQuestion

  constructor(bearer: LocalBearer, router: string, answer: AnswerQuestion) {
    this.#bearer = bearer
    this.#router = router
    this.#answer = answer
  }

  call(
    envelope: Envelope,
    tensors: readonly TensorRef[],
    o: { readonly signal: CancelSignal },
  ): AsyncIterable<BearerResponse> {
    return this.#bearer.call({ replica: this.#router }, envelope, tensors, o)
  }

  /** The answer comes as soon as it is there: nothing can be lost on the way, so only the signal ends the wait early. */
  ask(question: Question, argument: unknown, o: AskOptions): Promise<unknown> {
    const { signal, files = NO_FILES } = o
    return this.#answer(question, argument, { files, signal })
  }
}
