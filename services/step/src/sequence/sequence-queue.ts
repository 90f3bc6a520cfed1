import { ServeError } from '@tutti/errors'
import { requestPrefix, type StepRequest } from '@tutti/tensor'
import type { InstanceChoice, WaitingRequests } from '../execution/scheduler-parts.ts'
import { batchKey } from '../queue/queue-rules.ts'
import { DirectSlots } from './direct-slots.ts'
import { OldestSlots } from './oldest-slots.ts'
import {
  createSequence,
  type InstanceSlots,
  type Sequence,
  type SequenceEntry,
} from './sequence.ts'
import {
  backlogTimeoutError,
  endedEarlyError,
  notStartedError,
  stateLostError,
} from './sequence-errors.ts'
import type { SequenceRules } from './sequence-rules.ts'

interface Instance<T> {
  readonly slots: InstanceSlots<T>
  /** Executions that it works on. */
  open: number
  /** The requests of the last of them. */
  running: readonly SequenceEntry<T>[]
}

/**
 * Sequences of one model version. A sequence is bound to an instance from START to END. While the slots of all instances are
 * taken it waits in the backlog. Its requests execute in their order, one at a time. An iterative sequence is one request, which
 * may execute several times. The caller passes the time as `now`, in milliseconds.
 *
 * The class is both queue and instance choice, because a request of a sequence can execute on one instance only.
 */
export class SequenceQueue<T> implements WaitingRequests<T>, InstanceChoice {
  readonly #rules: SequenceRules
  readonly #instances: readonly Instance<T>[]
  /** Sequences that have not had their END. */
  readonly #byId = new Map<bigint | string, Sequence<T>>()
  /** Sequences without a slot, the first to come first. */
  readonly #backlog = new Set<Sequence<T>>()
  /** Sequences with a slot and without a request, the longest idle first. */
  readonly #idle = new Set<Sequence<T>>()
  readonly #running = new Map<T, SequenceEntry<T>>()
  /** Requests whose execution is over, until the next look. */
  readonly #executed: SequenceEntry<T>[] = []
  /** Requests that no longer wait and are not answered yet, each with its error. */
  readonly #refused: [T, ServeError][] = []
  #picked: readonly SequenceEntry<T>[] = []
  #length = 0
  #backlogExpiry = Number.POSITIVE_INFINITY
  /** Time of the next look at idle instances. */
  #wakeAt = Number.POSITIVE_INFINITY

  constructor(rules: SequenceRules) {
    this.#rules = rules
    const { strategy, slots } = rules
    this.#instances = Array.from({ length: rules.instances }, () => ({
      slots:
        strategy.kind === 'direct' ? new DirectSlots(slots, strategy) : new OldestSlots(strategy),
      open: 0,
      running: [],
    }))
  }

  get length(): number {
    return this.#length
  }

  get idle(): number {
    return this.#instances.filter(({ open }) => open === 0).length
  }

  /** Number of sequences with a slot, and of those that wait for one. */
  get sequences(): { readonly active: number; readonly backlog: number } {
    const active = this.#instances.reduce((sum, { slots }) => sum + slots.used, 0)
    return { active, backlog: this.#backlog.size }
  }

  get nextExpiry(): number {
    if (this.#refused.length > 0 || this.#executed.length > 0) return 0
    const [idle] = this.#idle
    const idleEnd = idle === undefined ? Number.POSITIVE_INFINITY : this.#idleEnd(idle)
    return Math.min(idleEnd, this.#backlogExpiry, this.#wakeAt)
  }

  /**
   * Adds a request. One that executes already waits for its next execution (an iterative sequence).
   *
   * @throws ServeError SEQUENCE_NOT_STARTED for a sequence that is not known; OVERLOADED.
   */
  add(item: T, request: StepRequest, now: number): SequenceEntry<T> {
    const { correlationId: id, timeoutUs, sequenceEnd } = request.context
    const sequence = this.#running.get(item)?.sequence ?? this.#admit(request)
    if (sequence.isOver) throw endedEarlyError(id)
    const { batchKey: inputs, isIterative } = this.#rules
    const entry: SequenceEntry<T> = {
      item,
      request,
      sequence,
      key: inputs === undefined ? '' : batchKey(inputs, request),
      enqueuedAt: now,
      isWaiting: true,
      hasExecuted: false,
      slot: 0,
    }
    this.#length += 1
    this.#idle.delete(sequence)
    sequence.waiting.push(entry)
    // A request that comes after END begins another sequence.
    if (sequenceEnd) this.#byId.delete(id)
    else if (!isIterative) this.#byId.set(id, sequence)
    if (sequence.place !== undefined) this.#offerFirst(sequence, now)
    else {
      if (timeoutUs > 0n) this.#limitBacklog(sequence, now + Number(timeoutUs) / 1000)
      this.#backlog.add(sequence)
      this.#fill(now)
    }
    return entry
  }

  /**
   * Removes a waiting request, and ends its sequence, because the model would miss the request.
   *
   * @returns false if it has left already.
   */
  remove(entry: SequenceEntry<T>): boolean {
    if (!entry.isWaiting) return false
    const { sequence } = entry
    this.#leave(entry)
    if (sequence.waiting[0] === entry) this.#withdraw(entry)
    sequence.waiting.splice(sequence.waiting.indexOf(entry), 1)
    this.endEarly(sequence, endedEarlyError(sequence.id))
    return true
  }

  expire(now: number): readonly (readonly [T, ServeError])[] {
    this.#settle(now)
    for (const sequence of this.#idle) {
      if (this.#idleEnd(sequence) > now) break
      this.#end(sequence)
    }
    if (this.#backlogExpiry <= now) this.#expireBacklog(now)
    this.#fill(now)
    return this.#refused.splice(0)
  }

  pick(now: number): number {
    this.#settle(now)
    this.#fill(now)
    this.#wakeAt = Number.POSITIVE_INFINITY
    for (const [index, { open, slots }] of this.#instances.entries()) {
      if (open > 0) continue
      const next = slots.next(now)
      if (typeof next === 'number') this.#wakeAt = Math.min(this.#wakeAt, next)
      else {
        this.#picked = next
        return index
      }
    }
    return -1
  }

  next(): readonly T[] {
    return this.#picked.map((entry) => {
      const { sequence, item, request } = entry
      sequence.waiting.shift()
      sequence.running += 1
      entry.slot = sequence.place?.slot ?? 0
      this.#leave(entry)
      this.#running.set(item, entry)
      if (request.context.sequenceEnd && !this.#rules.isIterative) this.#end(sequence)
      return item
    })
  }

  begin(index: number): void {
    const instance = this.#at(index)
    instance.open += 1
    instance.running = this.#picked
  }

  end(index: number): void {
    const instance = this.#at(index)
    instance.open -= 1
    for (const entry of instance.running) this.#running.delete(entry.item)
    this.#executed.push(...instance.running)
    instance.running = []
  }

  /** Notes that the engine gets a request of the batch that began last. @returns its entry; undefined if it is not running. */
  execute(item: T): SequenceEntry<T> | undefined {
    const entry = this.#running.get(item)
    if (entry === undefined) return undefined
    entry.hasExecuted = true
    entry.sequence.hasBegun = true
    return entry
  }

  /** Ends the sequences that an instance had begun, because all that it kept for them is lost. */
  lose(index: number): void {
    for (const sequence of this.#at(index).slots.sequences) {
      if (!sequence.hasBegun) continue
      this.endEarly(sequence, stateLostError(sequence.id, this.#rules.model))
    }
  }

  clear(): readonly T[] {
    const sequences = this.#instances.flatMap(({ slots }) => [...slots.sequences])
    for (const sequence of [...sequences, ...this.#backlog]) {
      this.endEarly(sequence, endedEarlyError(sequence.id))
    }
    return this.#refused.splice(0).map(([item]) => item)
  }

  /** Ends a sequence before its END. Its waiting requests fail with the error. */
  endEarly(sequence: Sequence<T>, error: ServeError): void {
    const [first] = sequence.waiting
    if (first !== undefined) this.#withdraw(first)
    for (const entry of sequence.waiting.splice(0)) {
      this.#leave(entry)
      this.#refused.push([entry.item, error])
    }
    this.#end(sequence)
  }

  #at(index: number): Instance<T> {
    const instance = this.#instances[index]
    if (instance === undefined) throw new ServeError('INTERNAL', `bug: no instance ${index}`)
    return instance
  }

  /** Finds or begins the sequence of a new request. */
  #admit(request: StepRequest): Sequence<T> {
    const sequence = this.#find(request)
    const most = this.#rules.maxQueuedRequests
    if (this.#length < most) return sequence
    const text = `${requestPrefix(request.context.id)}${most} requests wait for the model, which is the server's bound`
    throw new ServeError('OVERLOADED', text)
  }

  #find({ context }: StepRequest): Sequence<T> {
    const { correlationId: id, sequenceStart } = context
    const known = this.#byId.get(id)
    if (known !== undefined) return known
    if (sequenceStart) return createSequence(id)
    throw notStartedError(id, this.#rules.model)
  }

  #idleEnd(sequence: Sequence<T>): number {
    return sequence.idleSince + this.#rules.maxIdleMs
  }

  #leave(entry: SequenceEntry<T>): void {
    entry.isWaiting = false
    this.#length -= 1
  }

  #withdraw(entry: SequenceEntry<T>): void {
    const { place } = entry.sequence
    if (place !== undefined) this.#at(place.instance).slots.withdraw(entry)
  }

  /** Lets the first request of a sequence execute, unless the one before it still does or it was offered already. */
  #offerFirst(sequence: Sequence<T>, now: number): void {
    const { place, waiting, running } = sequence
    const [first] = waiting
    if (place === undefined || first === undefined || running > 0 || waiting.length > 1) return
    this.#at(place.instance).slots.offer(first, now)
  }

  /** Looks at what executions that are over mean for their sequences. */
  #settle(now: number): void {
    for (const { sequence, hasExecuted } of this.#executed.splice(0)) {
      sequence.running -= 1
      if (sequence.isOver) continue
      const { place, waiting } = sequence
      const [first] = waiting
      if (!hasExecuted) this.endEarly(sequence, endedEarlyError(sequence.id))
      else if (first === undefined && this.#rules.isIterative) this.#end(sequence)
      else if (first === undefined) {
        sequence.idleSince = now
        this.#idle.add(sequence)
      } else if (place !== undefined) this.#at(place.instance).slots.offer(first, now)
    }
  }

  /** Gives free slots to the sequences of the backlog. */
  #fill(now: number): void {
    for (const sequence of this.#backlog) {
      const index = this.#freest()
      if (index < 0) return
      const { slots } = this.#at(index)
      this.#backlog.delete(sequence)
      sequence.place = { instance: index, slot: slots.take(sequence) }
      sequence.expiresAt = Number.POSITIVE_INFINITY
      const [first] = sequence.waiting
      if (first !== undefined) slots.offer(first, now)
    }
  }

  /** Finds the instance with the fewest sequences, or -1 if all slots are taken. */
  #freest(): number {
    let index = -1
    let least = this.#rules.slots
    for (const [i, { slots }] of this.#instances.entries()) {
      if (slots.used >= least) continue
      least = slots.used
      index = i
    }
    return index
  }

  #limitBacklog(sequence: Sequence<T>, expiresAt: number): void {
    sequence.expiresAt = Math.min(sequence.expiresAt, expiresAt)
    this.#backlogExpiry = Math.min(this.#backlogExpiry, expiresAt)
  }

  #expireBacklog(now: number): void {
    this.#backlogExpiry = Number.POSITIVE_INFINITY
    for (const sequence of this.#backlog) {
      if (sequence.expiresAt <= now) this.endEarly(sequence, backlogTimeoutError())
      else this.#backlogExpiry = Math.min(this.#backlogExpiry, sequence.expiresAt)
    }
  }

  /** Ends a sequence: its slot is free, and its id may begin another. */
  #end(sequence: Sequence<T>): void {
    const { id, place, states } = sequence
    sequence.isOver = true
    sequence.place = undefined
    states?.close()
    if (place !== undefined) this.#at(place.instance).slots.free(sequence, place.slot)
    if (this.#byId.get(id) === sequence) this.#byId.delete(id)
    this.#idle.delete(sequence)
    this.#backlog.delete(sequence)
  }
}
