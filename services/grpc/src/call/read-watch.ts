import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { InferenceBackend } from '@tutti/serving'
import type { CallReader, ReadProgress } from './call-reader.ts'

/** The part of a `ServerCall` that `watchReads` uses. */
export interface WatchedCall {
  readonly isOver: boolean
  readonly stream: { readonly hasEnded: boolean }
  readonly reader: Pick<CallReader, 'begun'> | undefined
  readonly mayIdle: boolean
  readonly backend: Pick<InferenceBackend, 'checkCaller'>
  fail(error: ServeError): void
}

export interface ReadWatchOptions {
  readonly clock: Clock
  /** How long a client that owes a request may send no byte of it. */
  readonly silenceMs: number
  /** How long a client may take for a whole request. */
  readonly requestMs: number
  readonly calls: Iterable<WatchedCall>
}

/** The progress that a look saw of a call that had not sent its request whole. */
interface Seen {
  readonly messages: number
  readonly begunAt: number
  bytes: number
  cameAt: number
}

/** How often the calls are looked at: ends come that much later at most. */
const CHECK_MS = 5000
const NOTHING: ReadProgress = { messages: 0, bytes: 0 }

/**
 * Ends calls whose clients stop in the middle of a request, or take too long for it: its bytes would be held for ever. The client
 * of a call with one message owes it from the headers on. The client of a request stream owes nothing between two messages or
 * before the first. A stream also ends once its caller has lost its access. One timer serves all calls.
 *
 * @returns a function that ends the watch.
 */
export function watchReads({ clock, silenceMs, requestMs, calls }: ReadWatchOptions): () => void {
  const seen = new WeakMap<WatchedCall, Seen>()
  const check = (call: WatchedCall, now: number): void => {
    const progress = owedBy(call)
    const last = seen.get(call)
    if (progress === undefined) {
      seen.delete(call)
    } else if (last === undefined || last.messages !== progress.messages) {
      seen.set(call, { ...progress, begunAt: now, cameAt: now })
    } else if (now - last.begunAt >= requestMs) {
      call.fail(late(`is not complete after ${requestMs} ms`))
    } else if (last.bytes !== progress.bytes) {
      last.bytes = progress.bytes
      last.cameAt = now
    } else if (now - last.cameAt >= silenceMs) {
      call.fail(late(`is not complete, and nothing of it has come for ${silenceMs} ms`))
    }
  }
  let stopTimer: () => void
  const checkAll = (): void => {
    const now = clock.now()
    for (const call of calls) {
      check(call, now)
      checkCaller(call)
    }
    stopTimer = clock.setTimer(CHECK_MS, checkAll)
  }
  checkAll()
  return () => stopTimer()
}

/** Ends a stream whose caller has lost its access, although it may send nothing and only takes responses. */
function checkCaller(call: WatchedCall): void {
  if (call.isOver || !call.mayIdle) return
  try {
    call.backend.checkCaller?.()
  } catch (error) {
    call.fail(ServeError.from(error))
  }
}

/** How far the request is that the client has to complete; undefined if there is none. */
function owedBy({ isOver, stream, reader, mayIdle }: WatchedCall): ReadProgress | undefined {
  if (isOver || stream.hasEnded) return undefined
  return reader?.begun ?? (mayIdle ? undefined : NOTHING)
}

function late(text: string): ServeError {
  return new ServeError('DEADLINE_EXCEEDED', `the request ${text}`)
}
