import type { StepRequest } from '@tutti/tensor'
import type { SequenceRules } from '../sequence/sequence-rules.ts'

/** A request as the naive scheduler sees it. */
export interface NaiveRequest {
  readonly item: string
  readonly request: StepRequest
  readonly key: string
  readonly at: number
}

interface NaiveSequence {
  readonly id: bigint | string
  readonly waiting: NaiveRequest[]
  /** Ids of its END came: the next request with its id begins another. */
  hasEnd: boolean
  isOver: boolean
  hasBegun: boolean
  running: number
  place: { readonly instance: number; readonly slot: number } | undefined
  expiresAt: number
  idleSince: number
  /** When its first request could execute, as a place in the order of such events; 0 if it cannot. */
  offered: number
}

interface NaiveRun {
  readonly sequence: NaiveSequence
  readonly request: NaiveRequest
  readonly slot: number
}

/**
 * The behaviour that the sequence scheduler should have, said with plain lists and searches: after each event it looks at
 * everything. It knows neither preferred sizes nor delays of the oldest strategy, which are the ordinary queue's.
 */
export class NaiveSequences {
  readonly #rules: SequenceRules
  readonly #sequences: NaiveSequence[] = []
  readonly #running: (NaiveRun[] | undefined)[]
  #offers = 0
  /** Items that were refused since the last look. */
  refused: string[] = []

  constructor(rules: SequenceRules) {
    this.#rules = rules
    this.#running = Array.from({ length: rules.instances }, () => undefined)
  }

  /** @returns false if it is refused. */
  add(request: NaiveRequest): boolean {
    const { correlationId: id, sequenceStart, sequenceEnd, timeoutUs } = request.request.context
    const { isIterative } = this.#rules
    let sequence = this.#open.find((each) => each.id === id && !each.hasEnd)
    const length = this.#open.reduce((sum, { waiting }) => sum + waiting.length, 0)
    if (sequence === undefined && !sequenceStart) return false
    if (length >= this.#rules.maxQueuedRequests) return false
    if (sequence === undefined) {
      sequence = newSequence(id)
      this.#sequences.push(sequence)
    }
    sequence.waiting.push(request)
    sequence.hasEnd = sequenceEnd || isIterative
    if (sequence.place === undefined && timeoutUs > 0n) {
      const end = request.at + Number(timeoutUs) / 1000
      sequence.expiresAt = Math.min(sequence.expiresAt, end)
    }
    this.#look()
    return true
  }

  cancel(item: string): void {
    const sequence = this.#open.find(({ waiting }) => waiting.some((one) => one.item === item))
    if (sequence === undefined) return
    this.#end(sequence)
    this.refused = this.refused.filter((one) => one !== item)
  }

  /** Applies what time decides. */
  pass(now: number): void {
    for (const sequence of this.#open) {
      const isIdle = sequence.waiting.length === 0 && sequence.running === 0
      if (isIdle && sequence.idleSince + this.#rules.maxIdleMs <= now) this.#end(sequence)
      if (sequence.place === undefined && sequence.expiresAt <= now) this.#end(sequence)
    }
    this.#look()
  }

  /** @returns instance, and `slot:item` of each request, for every execution that begins now. */
  begin(now: number): (readonly [number, readonly string[]])[] {
    return this.#running.flatMap((running, instance) => {
      if (running !== undefined) return []
      const batch: NaiveRun[] = []
      const ready = this.#ready(instance, now)
      if (ready.length === 0) return []
      const names = ready.map((sequence) => {
        const slot = sequence.place?.slot ?? 0
        const [first] = sequence.waiting.splice(0, 1)
        if (first === undefined) throw new Error('nothing waits')
        sequence.offered = 0
        sequence.running += 1
        sequence.hasBegun = true
        batch.push({ sequence, request: first, slot })
        if (first.request.context.sequenceEnd && !this.#rules.isIterative) this.#end(sequence)
        return `${slot}:${first.item}`
      })
      this.#running[instance] = batch
      this.#look()
      return [[instance, names] as const]
    })
  }

  /** @param again - requests that are to execute again, of iterative sequences. */
  finish(instance: number, now: number, again: readonly string[] = []): void {
    for (const { sequence, request } of this.#running[instance] ?? []) {
      sequence.running -= 1
      sequence.idleSince = now
      if (again.includes(request.item)) sequence.waiting.push({ ...request, at: now })
      else if (this.#rules.isIterative) this.#end(sequence)
      this.#look(sequence)
    }
    this.#running[instance] = undefined
    this.#look()
  }

  lose(instance: number): void {
    for (const sequence of this.#open) {
      if (sequence.place?.instance === instance && sequence.hasBegun) this.#end(sequence)
    }
  }

  isBusy(instance: number): boolean {
    return this.#running[instance] !== undefined
  }

  /** Lists the requests that an instance executes. */
  running(instance: number): readonly NaiveRequest[] {
    return (this.#running[instance] ?? []).map(({ request }) => request)
  }

  get #open(): NaiveSequence[] {
    return this.#sequences.filter(({ isOver }) => !isOver)
  }

  #end(sequence: NaiveSequence): void {
    this.refused.push(...sequence.waiting.splice(0).map(({ item }) => item))
    sequence.isOver = true
    sequence.place = undefined
  }

  /** Gives out slots, then says of what may execute that it may. */
  #look(...only: NaiveSequence[]): void {
    if (only.length === 0) for (const sequence of this.#open) this.#place(sequence)
    for (const sequence of only.length === 0 ? this.#open : only) {
      const { waiting, place, running, offered, isOver } = sequence
      if (isOver || waiting.length === 0 || place === undefined) continue
      if (running === 0 && offered === 0) sequence.offered = ++this.#offers
    }
  }

  #place(sequence: NaiveSequence): void {
    if (sequence.place !== undefined) return
    const { instances, slots } = this.#rules
    const taken = Array.from({ length: instances }, (_, instance) =>
      this.#open.flatMap(({ place }) => (place?.instance === instance ? [place.slot] : [])),
    )
    const least = Math.min(...taken.map((each) => each.length))
    if (least >= slots) return
    const instance = taken.findIndex((each) => each.length === least)
    const free = Array.from({ length: slots }, (_, slot) => slot).find(
      (slot) => taken[instance]?.includes(slot) === false,
    )
    sequence.place = { instance, slot: free ?? 0 }
  }

  #ready(instance: number, now: number): NaiveSequence[] {
    const { strategy } = this.#rules
    const waiting = this.#open.filter((one) => one.place?.instance === instance && one.offered > 0)
    const keyOf = (one: NaiveSequence | undefined) => one?.waiting[0]?.key
    if (strategy.kind === 'oldest') {
      const inOrder = waiting.toSorted((a, b) => a.offered - b.offered)
      const other = inOrder.findIndex((one) => keyOf(one) !== keyOf(inOrder[0]))
      const fitting = other < 0 ? inOrder : inOrder.slice(0, other)
      return fitting.slice(0, strategy.queue.maxBatchSize)
    }
    const atOf = (one: NaiveSequence) => one.waiting[0]?.at ?? 0
    const bySlot = waiting.toSorted((a, b) => (a.place?.slot ?? 0) - (b.place?.slot ?? 0))
    const oldest = bySlot.toSorted((a, b) => atOf(a) - atOf(b))[0]
    if (oldest === undefined) return []
    const isEarly = now < atOf(oldest) + strategy.maxQueueDelayMs
    if (isEarly && bySlot.length < strategy.enough) return []
    return bySlot.filter((one) => keyOf(one) === keyOf(oldest))
  }
}

function newSequence(id: bigint | string): NaiveSequence {
  return {
    id,
    waiting: [],
    hasEnd: false,
    isOver: false,
    hasBegun: false,
    running: 0,
    place: undefined,
    expiresAt: Number.POSITIVE_INFINITY,
    idleSince: 0,
    offered: 0,
  }
}
