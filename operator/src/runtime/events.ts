import { createHash, randomUUID } from 'node:crypto'
import {
  backoffMs,
  type Clock,
  LineBudget,
  type Logger,
  limitLog,
  sleep,
  systemClock,
} from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  type Client,
  EVENT,
  type Event,
  isAlreadyExists,
  isNotFound,
  isTransient,
  type KubeObject,
  type ObjectReference,
  toMicroTime,
} from '@tutti/kube'
import { FIELD_MANAGER } from './children.ts'
import { eventFailed } from './log-events.ts'
import { LruMap } from './lru-map.ts'
import type { RuntimeMetrics } from './metrics.ts'

/** A Kubernetes event about an object. Controllers record one for a transition, not for a state that lasts. */
export interface EventInput {
  readonly regarding: KubeObject
  readonly type: 'Normal' | 'Warning'
  /** Reason, one CamelCase word. */
  readonly reason: string
  /** Action that the operator took, one CamelCase word. */
  readonly action: string
  /** Note for people; it is cut to 1 KiB. */
  readonly note: string
}

/** Returns the events without duplicates of reason and note, which two conditions may share. */
export function distinct(events: readonly EventInput[]): readonly EventInput[] {
  const textOf = ({ reason, note }: EventInput): string => `${reason} ${note}`
  return [...new Map(events.map((event) => [textOf(event), event])).values()]
}

export interface EventRecorderOptions {
  readonly client: Client
  /** Reporting controller of the events, `tutti.dev/operator` say. */
  readonly controller: string
  /** Name of the operator's pod. */
  readonly instance: string
  readonly clock?: Clock
  readonly random?: () => number
  readonly log: Logger
  readonly metrics: Pick<RuntimeMetrics, 'events'>
}

/** Bounds and times as client-go has them. */
const BURST = 25
const REFILL_MS = 300_000
const MOST_OBJECTS = 4096
const REFRESH_MS = 1_800_000
const NOTE_BYTES = 1024
const TRIES = 4
/** Events that are on their way to the server; a server that does not answer must not fill the memory. */
const MOST_IN_FLIGHT = 1000

/** One event that may come again. */
interface Series {
  readonly event: Event
  /** How often it came in all, and how often the server was told that it came. */
  count: number
  toldCount: number
  toldAt: number
}

/**
 * Sends events to the API server in the background. A repeated event becomes a series: the server hears of the first repetition,
 * then at most every half hour. An object may have 25 events at once, then one every five minutes.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions
  readonly #clock: Clock
  readonly #log: Logger
  readonly #series = new LruMap<Series>(MOST_OBJECTS)
  readonly #buckets = new LruMap<LineBudget>(MOST_OBJECTS)
  readonly #inFlight = new Set<Promise<void>>()
  readonly #stopping = new AbortController()
  readonly #run = randomUUID()

  constructor(o: EventRecorderOptions) {
    this.#options = o
    this.#clock = o.clock ?? systemClock
    this.#log = limitLog(o.log, { clock: this.#clock, lines: 10, everyMs: 10_000 })
  }

  /** Records an event. It never throws and never waits; an event over the limits is dropped and counted. */
  record(input: EventInput): void {
    if (this.#stopping.signal.aborted) return
    const key = keyOfEvent(input)
    const known = this.#series.get(key)
    if (known === undefined) {
      this.#begin(key, input)
      return
    }
    known.count += 1
    this.#options.metrics.events.add({ result: 'folded' })
    const isDue = known.toldCount === 1 || this.#clock.now() - known.toldAt >= REFRESH_MS
    if (isDue && this.#mayWrite(input.regarding)) this.#tell(known)
  }

  /** Waits until the server has answered all events in flight. If the signal aborts, it gives them up. */
  async close(o: { readonly signal: AbortSignal }): Promise<void> {
    const abort = (): void => {
      this.#stopping.abort(new ServeError('SERVER_STOPPING', 'the operator is stopping'))
    }
    if (o.signal.aborted) abort()
    o.signal.addEventListener('abort', abort, { once: true })
    await Promise.all(this.#inFlight)
    o.signal.removeEventListener('abort', abort)
    abort()
  }

  #begin(key: string, input: EventInput): void {
    if (!this.#mayWrite(input.regarding)) return
    const event = this.#toEvent(key, input)
    this.#series.set(key, { event, count: 1, toldCount: 1, toldAt: this.#clock.now() })
    this.#send(event.reason, () => this.#create(event))
  }

  #mayWrite(regarding: KubeObject): boolean {
    const { uid, name } = regarding.metadata
    const id = uid ?? `${regarding.kind}/${name}`
    let bucket = this.#buckets.get(id)
    if (bucket === undefined) {
      bucket = new LineBudget({ clock: this.#clock, lines: BURST, everyMs: REFILL_MS })
      this.#buckets.set(id, bucket)
    }
    if (bucket.take() !== undefined) return true
    this.#options.metrics.events.add({ result: 'dropped' })
    return false
  }

  #tell(series: Series): void {
    series.toldCount = series.count
    series.toldAt = this.#clock.now()
    const { event, count } = series
    const told = { count, lastObservedTime: toMicroTime(this.#clock.epochMs()) }
    this.#send(event.reason, async () => {
      try {
        await this.#options.client.mergePatch(EVENT, toKey(event), {
          patch: { series: told },
          ...this.#call(),
        })
      } catch (error) {
        // The server keeps events for an hour.
        if (!isNotFound(error)) throw error
        await this.#create({ ...event, series: told })
      }
    })
  }

  async #create(event: Event): Promise<void> {
    try {
      await this.#options.client.create(EVENT, event, this.#call())
    } catch (error) {
      // The answer to an earlier try was lost.
      if (!isAlreadyExists(error)) throw error
    }
  }

  #send(reason: string, write: () => Promise<void>): void {
    if (this.#inFlight.size >= MOST_IN_FLIGHT) {
      this.#options.metrics.events.add({ result: 'dropped' })
      return
    }
    const sent = this.#sendWithRetries(write)
      .then(
        () => this.#options.metrics.events.add({ result: 'written' }),
        (error: unknown) => {
          this.#options.metrics.events.add({ result: 'failed' })
          if (!this.#stopping.signal.aborted) eventFailed(this.#log, reason, error)
        },
      )
      .finally(() => this.#inFlight.delete(sent))
    this.#inFlight.add(sent)
  }

  async #sendWithRetries(write: () => Promise<void>): Promise<void> {
    const { signal } = this.#stopping
    for (let attempt = 0; ; attempt++) {
      try {
        await write()
        return
      } catch (error) {
        if (!isTransient(error) || attempt + 1 >= TRIES) throw error
        const { random = Math.random } = this.#options
        const delayMs = backoffMs(attempt, { firstMs: 1000, longestMs: 10_000, random })
        await sleep(delayMs, { clock: this.#clock, signal })
      }
    }
  }

  #toEvent(key: string, input: EventInput): Event {
    const { regarding } = input
    const epochMs = this.#clock.epochMs()
    const id = createHash('sha256').update(`${this.#run}/${key}/${epochMs}`).digest('hex')
    return {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: {
        name: `${regarding.metadata.name.slice(0, 200)}.${id.slice(0, 16)}`,
        // Events of cluster-scoped objects are in this one.
        namespace: regarding.metadata.namespace ?? 'default',
      },
      eventTime: toMicroTime(epochMs),
      reportingController: this.#options.controller,
      reportingInstance: this.#options.instance.slice(0, 128),
      action: input.action,
      reason: input.reason,
      type: input.type,
      note: cut(input.note),
      regarding: toReference(regarding),
    }
  }

  #call(): { fieldManager: string; signal: AbortSignal } {
    return { fieldManager: FIELD_MANAGER, signal: this.#stopping.signal }
  }
}

function keyOfEvent({ regarding, type, reason, action, note }: EventInput): string {
  const { kind, metadata } = regarding
  const object = metadata.uid ?? `${metadata.namespace ?? ''}/${metadata.name}`
  return JSON.stringify([kind, object, type, reason, action, note])
}

function toKey({ metadata }: Event): { name: string; namespace: string } {
  return { name: metadata.name, namespace: metadata.namespace ?? 'default' }
}

function toReference({ apiVersion, kind, metadata }: KubeObject): ObjectReference {
  const { name, namespace, uid, resourceVersion } = metadata
  return { apiVersion, kind, name, namespace, uid, resourceVersion }
}

/** Cuts a note to the server's bound in bytes, not within a character. */
function cut(note: string): string {
  if (Buffer.byteLength(note) <= NOTE_BYTES) return note
  const bytes = Buffer.from(note).subarray(0, NOTE_BYTES - 3)
  return `${new TextDecoder().decode(bytes).replace(/\uFFFD+$/, '')}…`
}
