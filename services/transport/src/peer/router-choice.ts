import { type CancelSignal, ServeError } from '@tutti/errors'
import type { Envelope, Heartbeat } from '@tutti/protocol'
import type { TensorRef } from '@tutti/tensor'
import type { AskOptions, PeerQuestions, Question, RouterCalls } from '../peers.ts'
import { StepDirectory } from '../step-directory.ts'
import type { BearerResponse, TensorBearer } from '../tensor-bearer.ts'

/** What every router serves: all of them look alike to a step. */
const EVERYTHING = { model: '', version: 0, revision: '' }

/** As many as an ensemble makes at a step. */
const MAX_ATTEMPTS = 3

/** Chooses among the routers of the repository, by the rule by which routers choose among replicas: least in flight. */
export class RouterChoice implements RouterCalls {
  readonly #calls: TensorBearer & PeerQuestions
  readonly #directory = new StepDirectory()

  constructor(calls: TensorBearer & PeerQuestions) {
    this.#calls = calls
  }

  heard(heartbeat: Heartbeat, what: 'new' | 'changed' | 'load'): void {
    if (heartbeat.role !== 'router') return
    const { peer, draining, freeSlots } = heartbeat
    // A router that drains still takes what belongs to requests that were admitted before, if no other is there.
    const load = { ...heartbeat, freeSlots: draining ? 0 : freeSlots }
    if (what === 'new') this.#directory.announce({ replica: peer }, [EVERYTHING], load)
    else this.#directory.report(peer, load)
  }

  suspect(router: string, isSuspect: boolean): void {
    this.#directory.suspect(router, isSuspect)
  }

  gone(router: string): void {
    this.#directory.remove(router)
  }

  async *call(
    envelope: Envelope,
    tensors: readonly TensorRef[],
    o: { readonly signal: CancelSignal },
  ): AsyncGenerator<BearerResponse, undefined> {
    const avoid = new Set<string>()
    for (let attempt = 1; ; attempt += 1) {
      const { address, release } = this.#acquire(avoid)
      let hasResponded = false
      try {
        for await (const response of this.#calls.call(
          address,
          { ...envelope, attempt },
          tensors,
          o,
        )) {
          hasResponded = true
          yield response
        }
        return
      } catch (error) {
        if (hasResponded || attempt === MAX_ATTEMPTS || !isElsewherePossible(error)) throw error
        avoid.add(address.replica)
      } finally {
        release()
      }
    }
  }

  async ask(question: Question, argument: unknown, o: AskOptions): Promise<unknown> {
    const { address, release } = this.#acquire(new Set())
    try {
      return await this.#calls.ask(address.replica, question, argument, o)
    } finally {
      release()
    }
  }

  #acquire(avoid: ReadonlySet<string>): NonNullable<ReturnType<StepDirectory['acquire']>> {
    const place = this.#directory.acquire(EVERYTHING, avoid)
    if (place !== undefined) return place
    throw new ServeError('STEP_UNAVAILABLE', 'no router of the repository is there')
  }
}

/** What a call throws was not executed, but for what was lost on the way; only some of it may go better elsewhere. */
function isElsewherePossible(error: unknown): boolean {
  const { reason } = ServeError.from(error)
  return reason === 'STEP_UNAVAILABLE' || reason === 'OVERLOADED' || reason === 'SERVER_STOPPING'
}
