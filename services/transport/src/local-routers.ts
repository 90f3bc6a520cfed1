import type { CancelSignal } from '@tutti/errors'
import type { Envelope } from '@tutti/protocol'
import type { TensorRef } from '@tutti/tensor'
import type { LocalBearer } from './local-bearer.ts'
import type { AnswerQuestion, Question, RouterCalls } from './peers.ts'
import type { BearerResponse } from './tensor-bearer.ts'

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

  ask(question: Question, argument: unknown): Promise<unknown> {
    return this.#answer(question, argument)
  }
}
