import type { SleepMark } from '@tutti/api'
import { type CallContext, type Clock, signalError } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { ResponseSink } from '@tutti/tensor'
import type { ServedRevision } from '@tutti/transport'
import type { ResolvedEntry } from '../catalog/catalog.ts'
import { reachedNames } from './pinned-requests.ts'

/** A call that found no replica. */
export interface HoldOptions {
  readonly revision: ServedRevision
  /** The model or ensemble of the request for which the call is made. */
  readonly root: ResolvedEntry
  readonly context: Pick<CallContext, 'signal' | 'deadlineAt'>
  /** Called back once, when a replica serves the model. */
  readonly again: () => void
  readonly sink: Pick<ResponseSink, 'fail'>
}

export interface HeldCallsOptions {
  readonly clock: Clock
  /** Most calls that are held. */
  readonly most: number
  /** Called when the answer of `wanted` may have changed. */
  readonly changed: () => void
  /** Finds the terms under which calls wait; undefined if a replica serves the version, or none is to be expected. */
  readonly sleepOf: (revision: ServedRevision) => SleepMark | undefined
  readonly isAsleep: (model: string) => boolean
  /** Finds why a replica does not serve a version that it knows; undefined if there is no such reason. */
  readonly faultOf: (revision: ServedRevision) => string | undefined
}

interface HeldCall extends HoldOptions {
  /** Terms as they were last, with the progress of the start. */
  sleep: SleepMark
  readonly since: number
  stop: () => void
}

/**
 * A hold ends so long before the deadline of its request, or by a tenth of the time that is left, so that the client gets the reason
 * and not only its own timeout.
 */
const MARGIN_MS = 100

/**
 * The calls that wait for the first replica of a Model that has none while no request comes. What starts replicas learns from
 * `wanted` for which Models. A call ends its wait when a replica serves the model, when its time is over, or when its caller
 * leaves.
 */
export class HeldCalls {
  readonly #options: HeldCallsOptions
  readonly #calls = new Set<HeldCall>()

  constructor(o: HeldCallsOptions) {
    this.#options = o
  }

  /**
   * Lists the models without a replica for which calls wait, and those that their graphs call, by name: they are started together,
   * so that their loads overlap.
   */
  wanted(): readonly string[] {
    const names = new Set<string>()
    const roots = new Set<ResolvedEntry>()
    for (const { revision, root } of this.#calls) {
      names.add(revision.model)
      roots.add(root)
    }
    for (const root of roots) for (const name of reachedNames(root)) names.add(name)
    return [...names].filter((name) => this.#options.isAsleep(name)).toSorted()
  }

  /**
   * Holds a call whose model sleeps, or refuses it if too many are held.
   *
   * @returns false if the model does not sleep, so that there is nothing to wait for.
   */
  hold(o: HoldOptions): boolean {
    const { clock, most, sleepOf } = this.#options
    const { signal, deadlineAt = Number.POSITIVE_INFINITY } = o.context
    const sleep = sleepOf(o.revision)
    if (sleep === undefined) return false
    if (this.#calls.size >= most) {
      o.sink.fail(toOverloaded(o.revision, most), 'no')
      return true
    }
    const now = clock.now()
    const leftMs = deadlineAt - now
    const held: HeldCall = { ...o, sleep, since: now, stop: () => {} }
    const waitMs = Math.min(sleep.loadMs, leftMs - Math.min(MARGIN_MS, leftMs / 10))
    const stopTimer = clock.setTimer(waitMs, () => this.#fail(held, toStarting(held, clock.now())))
    const onAbort = (): void => this.#fail(held, signalError(signal))
    signal.addEventListener('abort', onAbort, { once: true })
    held.stop = () => {
      stopTimer()
      signal.removeEventListener('abort', onAbort)
    }
    this.#calls.add(held)
    this.#options.changed()
    return true
  }

  /** Looks at every call again. Call it after each change of what is served. */
  review(): void {
    if (this.#calls.size === 0) return
    // A call that goes on may be held again, for another wait.
    for (const held of Array.from(this.#calls)) {
      const sleep = this.#options.sleepOf(held.revision)
      if (sleep === undefined) this.#release(held)
      else held.sleep = sleep
    }
    this.#options.changed()
  }

  #release(held: HeldCall): void {
    const fault = this.#options.faultOf(held.revision)
    if (fault !== undefined) this.#fail(held, toNotReady(held.revision, fault))
    else if (this.#take(held)) held.again()
  }

  #fail(held: HeldCall, error: ServeError): void {
    if (!this.#take(held)) return
    this.#options.changed()
    held.sink.fail(error, 'no')
  }

  #take(held: HeldCall): boolean {
    held.stop()
    return this.#calls.delete(held)
  }
}

function toOverloaded({ model, version }: ServedRevision, most: number): ServeError {
  const text = `model '${model}' is starting, and ${most} calls wait for models to start, want at most as many`
  return new ServeError('OVERLOADED', text, { details: { model, version: String(version) } })
}

function toNotReady({ model, version }: ServedRevision, fault: string): ServeError {
  const text = `model '${model}' was started and is not ready: ${fault}`
  // The wait was for this replica: another attempt at once would find the same.
  const options = { details: { model, version: String(version) }, wasRetried: true }
  return new ServeError('MODEL_NOT_READY', text, options)
}

function toStarting({ revision, sleep, since }: HeldCall, now: number): ServeError {
  const { model, version } = revision
  const waited = `waited ${((now - since) / 1000).toFixed(1)} s for its first replica`
  const start = sleep.start ?? 'the start has not been reported yet'
  const text = `model '${model}' is starting: ${waited}: ${start}`
  const options = { details: { model, version: String(version) }, wasRetried: true }
  return new ServeError('MODEL_STARTING', text, options)
}
