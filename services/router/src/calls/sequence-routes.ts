import { type Clock, signalError } from '@tutti/chassis'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { Executed, InferRequest, ResponseSink, StepResponse, StepTimes } from '@tutti/tensor'
import { type Replica, type StepDirectory, UNWEIGHED } from '@tutti/transport'
import { noReplica, type ResolvedEntry } from '../catalog/catalog.ts'
import type { ChosenReplica, Pin } from './pin.ts'

/** Sequences that a router remembers, some 300 bytes each: more than the replicas of a few models have slots for. */
const MAX_SEQUENCES = 262_144
/** Time between two looks for sequences that can be forgotten. */
const SWEEP_MS = 1000

interface RouteDependencies {
  readonly directory: Pick<StepDirectory, 'places' | 'whenDecided' | 'takesWork'>
  readonly clock: Clock
}

/** A request to a model with sequences. */
interface SequenceCall {
  readonly target: ResolvedEntry
  readonly request: InferRequest
  readonly context: { readonly signal: CancelSignal }
}

/** How such a request is called. */
interface SequenceCaller {
  /** The revision that the request would use by itself. */
  pinOf(): Pin
  /** Takes a place at a replica that the request would use by itself. @throws ServeError */
  choose(): ChosenReplica
  /** @param pins - choose the replica; undefined leaves that to the request. */
  call(pins: RoutePins | undefined, sink: ResponseSink): void
}

/** A request that waits for the one before it in its sequence. */
interface WaitingCall {
  readonly call: SequenceCall
  readonly caller: SequenceCaller
  readonly sink: ResponseSink
  readonly stopListening: () => void
}

/** One sequence of one model version, as this router sees it. */
interface Route {
  readonly key: string
  readonly id: bigint | string
  /** Replica of the sequence's requests; undefined before the first request was sent, and after END. */
  place: { readonly replica: string; readonly pin: Pin } | undefined
  /** True if the sequence ended early: only a START goes on. */
  isLost: boolean
  isBusy: boolean
  readonly waiting: WaitingCall[]
  /** Time after which the sequence may be forgotten, unless one of its requests is in flight. */
  expiresAt: number
}

/**
 * Sends the requests of a sequence to the replica, and under the revision, of its first one: there its state is. A sequence that
 * this router does not know goes where every router would send it, by a hash of its id. One request of a sequence is on its way
 * at a time, so that none overtakes another.
 */
export class SequenceRoutes {
  readonly #routes = new Map<string, Route>()
  readonly #dependencies: RouteDependencies
  #nextSweep = 0

  constructor(o: RouteDependencies) {
    this.#dependencies = o
  }

  /** Sequences that are remembered. */
  get size(): number {
    return this.#routes.size
  }

  /** Calls a model with `sequence_batching`. Without a correlation id, or in this process, that needs no route. Never throws. */
  begin(call: SequenceCall, sink: ResponseSink, caller: SequenceCaller): void {
    const { correlationId: id } = call.request.context
    const isApart =
      id !== 0n && id !== '' && !isLocal(this.#dependencies.directory.places, call.target)
    if (!isApart) return caller.call(undefined, sink)
    const route = this.#find(call)
    if (route === undefined) {
      const text = `this router works on ${MAX_SEQUENCES} sequences, want at most as many`
      return sink.fail(new ServeError('OVERLOADED', text), 'no')
    }
    const { signal } = call.context
    const leave = (): void => this.#leave(route, sink, signal)
    signal.addEventListener('abort', leave)
    const stopListening = (): void => signal.removeEventListener('abort', leave)
    route.waiting.push({ call, caller, sink, stopListening })
    this.#pump(route)
  }

  #find({ target, request }: SequenceCall): Route | undefined {
    const { correlationId: id } = request.context
    const { model, version } = target.pinned
    const key = `${model} ${version} ${typeof id} ${id}`
    const known = this.#routes.get(key)
    if (known !== undefined) return known
    const now = this.#dependencies.clock.now()
    if (now >= this.#nextSweep) this.#sweep(now)
    if (this.#routes.size >= MAX_SEQUENCES) return undefined
    const fresh = { place: undefined, isLost: false, isBusy: false, waiting: [], expiresAt: 0 }
    const route: Route = { key, id, ...fresh }
    this.#routes.set(key, route)
    return route
  }

  #sweep(now: number): void {
    this.#nextSweep = now + SWEEP_MS
    for (const [key, { isBusy, expiresAt }] of this.#routes) {
      if (!isBusy && expiresAt <= now) this.#routes.delete(key)
    }
  }

  /** Begins the next request, and the ones after it as long as they end at once. */
  #pump(route: Route): void {
    while (!route.isBusy) {
      const next = route.waiting.shift()
      if (next === undefined) return
      next.stopListening()
      route.isBusy = true
      const { call, caller } = next
      const sink = new RouteSink(next.sink, (error) => this.#ended(route, call, error))
      const { directory } = this.#dependencies
      caller.call(new RoutePins({ route, caller, directory, request: call.request }), sink)
    }
  }

  #ended(route: Route, call: SequenceCall, error?: ServeError): void {
    const { sequence_batching: batching } = call.target.config
    const idleMs = (batching?.max_sequence_idle_microseconds ?? 0) / 1000
    const isOver = call.request.context.sequenceEnd || error?.reason === 'SEQUENCE_NOT_STARTED'
    if (isOver) route.place = undefined
    route.isBusy = false
    route.expiresAt = this.#dependencies.clock.now() + idleMs
    if (isOver && !route.isLost && route.waiting.length === 0) this.#routes.delete(route.key)
    this.#pump(route)
  }

  /** Removes a waiting request whose caller is gone: the model would miss the request, so the sequence ends. */
  #leave(route: Route, sink: ResponseSink, signal: CancelSignal): void {
    const place = route.waiting.findIndex((one) => one.sink === sink)
    if (place < 0) return
    const [gone, ...others] = route.waiting.splice(place)
    // Requests in flight still end where they are.
    route.isLost = true
    gone?.stopListening()
    sink.fail(signalError(signal), 'no')
    const text = `sequence ${route.id} ended early: an earlier request of it was given up before it executed`
    for (const other of others) {
      other.stopListening()
      other.sink.fail(new ServeError('CANCELLED', text), 'no')
    }
  }
}

/**
 * Tells whether a model is of this process. It has one replica, which announces no load: its requests are never apart from one
 * another.
 */
function isLocal(places: StepDirectory['places'], { pinnedKey }: ResolvedEntry): boolean {
  const serving = places.byRevision.get(pinnedKey)
  return serving?.length === 1 && serving[0]?.load === undefined
}

interface RoutedRequest {
  readonly route: Route
  readonly caller: SequenceCaller
  readonly directory: RouteDependencies['directory']
  readonly request: InferRequest
}

/** Chooses the replica of a sequence for each attempt of one of its requests. */
class RoutePins {
  readonly #routed: RoutedRequest

  constructor(o: RoutedRequest) {
    this.#routed = o
  }

  /** @throws ServeError SEQUENCE_NOT_STARTED if the replica of the sequence is gone. */
  choose(_o: unknown, resolved: ResolvedEntry): ChosenReplica {
    const { route, directory, caller, request } = this.#routed
    const isStart = request.context.sequenceStart
    if (route.isLost && !isStart) throw notStarted(route.id, resolved)
    const known = route.place
    if (known !== undefined) {
      const { pin } = known
      const replica = findReplica(directory.places, pin, known.replica)
      if (replica !== undefined) return this.#take(pin, replica)
      requireDecided(directory, pin, known.replica)
      route.place = undefined
      if (!isStart) throw notStarted(route.id, resolved)
    }
    const pin = caller.pinOf()
    const replica = byHash(directory.places.byRevision.get(pin.key) ?? [], route.key)
    if (replica !== undefined) return this.#take({ ...pin }, replica)
    const chosen = caller.choose()
    chosen.replica.inFlight -= 1
    chosen.replica.workUs -= chosen.work.us
    return this.#take({ ...chosen.pin }, chosen.replica)
  }

  ended({ replica }: ChosenReplica): void {
    replica.inFlight -= 1
  }

  pinOf(): Pin {
    return this.#routed.route.place?.pin ?? this.#routed.caller.pinOf()
  }

  #take(pin: Pin, replica: Replica): ChosenReplica {
    replica.inFlight += 1
    this.#routed.route.isLost = false
    this.#routed.route.place = { replica: replica.address.replica, pin }
    return { pin, replica, work: UNWEIGHED }
  }
}

function findReplica(places: StepDirectory['places'], { key }: Pin, replica: string) {
  return places.byRevision.get(key)?.find(({ address }) => address.replica === replica)
}

/** @throws ServeError STEP_UNAVAILABLE, which waits, as long as the replica may only be slow to answer. */
function requireDecided(
  directory: RouteDependencies['directory'],
  { target }: Pin,
  replica: string,
): void {
  if (!directory.takesWork(replica)) return
  const leave = directory.whenDecided(target, () => {})
  if (leave === undefined) return
  leave()
  throw noReplica(target)
}

/** Makes the error with Triton's text. */
function notStarted(id: bigint | string, { entry }: ResolvedEntry): ServeError {
  const text = `inference request for sequence ${id} to model '${entry.name}' must specify the START flag on the first request of the sequence`
  return new ServeError('SEQUENCE_NOT_STARTED', text)
}

/** Rendezvous hashing: another replica changes only the sequences that it gets, or that it had. */
function byHash(replicas: readonly Replica[], key: string): Replica | undefined {
  let best: Replica | undefined
  let most = -1
  for (const replica of replicas) {
    const weight = hash(`${replica.address.replica} ${key}`)
    if (weight <= most) continue
    most = weight
    best = replica
  }
  return best
}

/** Computes FNV-1a and mixes its bits: the ids of sequences differ in their last digits. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (let i = 0; i < text.length; i += 1) {
    value = Math.imul(value ^ text.charCodeAt(i), 0x01000193)
  }
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35)
  return (value ^ (value >>> 16)) >>> 0
}

/** Passes on what comes for a request, then says that the next one may go. */
class RouteSink implements ResponseSink {
  readonly #sink: ResponseSink
  readonly #ended: (error?: ServeError) => void

  constructor(sink: ResponseSink, ended: (error?: ServeError) => void) {
    this.#sink = sink
    this.#ended = ended
  }

  send(response: StepResponse): void {
    this.#sink.send(response)
    if (response.final) this.#ended()
  }

  fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    this.#sink.fail(error, executed, times)
    this.#ended(error)
  }

  ready(): Promise<void> | undefined {
    return this.#sink.ready?.()
  }
}
