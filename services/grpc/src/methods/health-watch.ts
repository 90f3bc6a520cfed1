import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { InferenceBackend } from '@tutti/serving'
import type { ServerCall } from '../call/server-call.ts'
import { type Handler, type MethodDefinition, toFrame } from './method.ts'
import { SentResponses } from './sent-responses.ts'

/** How late a client hears of a change at most. */
const LOOK_MS = 500
/** Most `Watch` calls of one server. A further call ends the oldest: clients that only open streams must not keep others out. */
export const MAX_WATCHES = 1024

type State = 'SERVING' | 'NOT_SERVING'

interface Watch {
  readonly call: ServerCall
  readonly definition: MethodDefinition
  readonly sent: SentResponses
  state: State | undefined
}

/** Reads the health of the server as a whole. As in Triton, the service that a client names does not matter. */
export function healthStateOf(backend: InferenceBackend): State {
  return backend.isLive() && backend.isReady() ? 'SERVING' : 'NOT_SERVING'
}

/** The open `Watch` calls of a server. One timer serves all of them, and there is none while there is no call. */
export class HealthWatches {
  readonly #clock: Clock
  readonly #watches = new Set<Watch>()
  #stopTimer: (() => void) | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Sends the state at once and then each change, until the client leaves or the server stops. */
  readonly serve: Handler = (call, definition) => {
    const watch: Watch = { call, definition, sent: new SentResponses(call), state: undefined }
    call.whenStopping(() => this.#stop(watch))
    this.#begin(watch)
  }

  #begin(watch: Watch): void {
    const { call } = watch
    // It waits for the server, not the other way round, and ends once its caller has lost its access.
    call.mayIdle = true
    call.whenClosed(() => this.#remove(watch))
    this.#watches.add(watch)
    if (this.#watches.size > MAX_WATCHES) this.#endOldest()
    this.#look(watch)
    this.#stopTimer ??= this.#clock.setTimer(LOOK_MS, this.#lookAtAll)
  }

  readonly #lookAtAll = (): void => {
    for (const watch of this.#watches) this.#look(watch)
    this.#stopTimer = this.#clock.setTimer(LOOK_MS, this.#lookAtAll)
  }

  #look(watch: Watch, isStopping = false): void {
    try {
      this.#send(watch, isStopping ? 'NOT_SERVING' : healthStateOf(watch.call.backend))
    } catch (error) {
      watch.call.fail(ServeError.from(error))
    }
  }

  /** Sends a state. A client that has not taken the last state yet gets the newest one after it. @throws ServeError OVERLOADED */
  #send(watch: Watch, state: State): void {
    const { call, definition, sent } = watch
    if (call.isOver || call.offeredAt !== undefined || state === watch.state) return
    const frame = toFrame(definition.responseSerialize({ status: state }))
    call.charge(frame.byteLength)
    sent.send(frame)
    watch.state = state
  }

  #stop(watch: Watch): void {
    // One that has just come has not asked yet.
    if (this.#watches.has(watch)) this.#look(watch, true)
    watch.call.fail(new ServeError('SERVER_STOPPING', 'Server exiting'))
  }

  #endOldest(): void {
    const [oldest] = this.#watches
    if (oldest === undefined) return
    this.#remove(oldest)
    const text = `server is overloaded: more than ${MAX_WATCHES} calls watch its health, this one the longest`
    oldest.call.fail(new ServeError('OVERLOADED', text))
  }

  #remove(watch: Watch): void {
    this.#watches.delete(watch)
    if (this.#watches.size > 0) return
    this.#stopTimer?.()
    this.#stopTimer = undefined
  }
}
