import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Heartbeat } from '@tutti/protocol'
import {
  type ExecuteOptions,
  type Executor,
  type InferRequest,
  type ModelTarget,
  type ResponseSink,
} from '@tutti/tensor'
import type {
  AskOptions,
  FindReplicaExecutor,
  MemberQuestions,
  Question,
  RouterCalls,
} from '../endpoints.ts'
import type { Novelty } from '../members/membership.ts'
import { type FailedAttempt, retryOrFail } from '../retries.ts'
import { StepDirectory } from '../step-directory.ts'
import type { MemberListener } from './endpoint.ts'

/** The revision that every router serves: all of them look alike to a step. */
const EVERYTHING = { model: '', version: 0, revision: '' }

/** Most attempts, as many as an ensemble makes at a step. */
const MAX_ATTEMPTS = 3

/** The calls and questions that go to a router that was chosen. */
export interface ChosenCalls extends MemberQuestions {
  readonly executor: FindReplicaExecutor
}

/** Chooses among the routers of the repository, by the rule by which routers choose among replicas: least in flight. */
export class RouterChoice implements RouterCalls, MemberListener {
  readonly #calls: ChosenCalls
  readonly #directory = new StepDirectory()
  readonly clock: Clock

  constructor(calls: ChosenCalls, clock: Clock) {
    this.#calls = calls
    this.clock = clock
  }

  heard(heartbeat: Heartbeat, what: Novelty): void {
    if (heartbeat.role !== 'router') return
    const { member, draining, freeSlots } = heartbeat
    // A router that drains still takes what belongs to requests that were admitted before, if no other is there.
    const load = { ...heartbeat, freeSlots: draining ? 0 : freeSlots }
    if (what === 'new') this.#directory.announce({ replica: member }, [EVERYTHING], load)
    else this.#directory.report(member, load)
  }

  suspected(router: string, isSuspect: boolean): void {
    this.#directory.suspect(router, isSuspect)
  }

  gone(router: string, _error: ServeError, endCalls: () => void): void {
    this.#directory.remove(router)
    endCalls()
  }

  executor(target: ModelTarget): Executor {
    return { execute: (request, sink, o) => this.#execute(target, request, sink, o) }
  }

  #execute(
    target: ModelTarget,
    request: InferRequest,
    sink: ResponseSink,
    o: ExecuteOptions,
  ): void {
    const avoid = new Set<string>()
    const retry = (failed: FailedAttempt): void => {
      const again = (): void => attempt(failed.tries + 1)
      const { clock } = this
      retryOrFail(failed, { delayMs: retryAtOnce, again, clock, signal: o.signal }, sink)
    }
    const attempt = (tries: number): void => {
      let hasResponded = false
      const place = this.#directory.places.acquire(EVERYTHING, { avoid })
      const placed: ResponseSink = {
        send: (response) => {
          hasResponded = true
          if (response.final && place !== undefined) place.inFlight -= 1
          sink.send(response)
        },
        fail: (error, executed, times) => {
          if (place !== undefined) {
            place.inFlight -= 1
            avoid.add(place.address.replica)
          }
          retry({ error, executed, times, hasResponded, tries })
        },
        ready: () => sink.ready?.(),
      }
      if (place === undefined) return placed.fail(noRouter(), 'no')
      const { requestKey = '', ...origin } = o.origin ?? { step: '' }
      const own = { ...o, origin: { requestKey, ...origin, attempt: tries } }
      this.#calls.executor(target, place.address.replica).execute(request, placed, own)
    }
    attempt(1)
  }

  async ask(question: Question, argument: unknown, o: AskOptions): Promise<unknown> {
    const place = this.#directory.places.acquire(EVERYTHING)
    if (place === undefined) throw noRouter()
    try {
      return await this.#calls.ask(place.address.replica, question, argument, o)
    } finally {
      place.inFlight -= 1
    }
  }
}

function noRouter(): ServeError {
  return new ServeError('STEP_UNAVAILABLE', 'no router of the repository is there')
}

/** Decides whether to try again at once: a call that was not executed may go better elsewhere, for some reasons. */
function retryAtOnce({ error, executed, hasResponded, tries }: FailedAttempt): number | undefined {
  const { reason } = error
  const isElsewherePossible =
    reason === 'STEP_UNAVAILABLE' || reason === 'OVERLOADED' || reason === 'SERVER_STOPPING'
  const mayRetry = executed === 'no' && !hasResponded && tries < MAX_ATTEMPTS
  return mayRetry && isElsewherePossible ? 0 : undefined
}
