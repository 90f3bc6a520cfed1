import { ServeError } from '@tutti/errors'
import { type Message, toWireError } from '@tutti/protocol'
import type { Departure } from '../members/membership.ts'
import type { MessagingContext } from './call.ts'
import { callDetails, callError, tooLargeInput } from './call-errors.ts'
import { CalledReplicas } from './called-replicas.ts'
import { OpenCall, type OutgoingContext, type RequestedCall } from './open-call.ts'
import { TOMBSTONES } from './recent-keys.ts'
import { ResponseMemory } from './response-memory.ts'
import { throwAway } from './throw-away.ts'

/** Calls that a member makes at the same time. */
export const MAX_OPEN_CALLS = 8192

/**
 * The calls that a member makes: knows which are open, and tells them what happens to their replicas and to the broker. Without
 * clock and I/O: time comes as `now`, messages go through `send`.
 */
export class OutgoingCalls {
  readonly #context: OutgoingContext
  readonly #calls = new Map<number, OpenCall>()
  /** Calls that failed while the broker was away, and where: the replicas are told when it is back. */
  readonly #untold = new Map<number, string>()
  #next = 1

  constructor(context: MessagingContext) {
    this.#context = {
      ...context,
      replicas: new CalledReplicas(context),
      memory: new ResponseMemory(context.settings),
      ended: ({ call }) => this.#calls.delete(call),
    }
  }

  /** Calls that have not ended. */
  get size(): number {
    return this.#calls.size
  }

  /** Bytes of responses that are arriving or that no reader has taken yet. */
  get reservedBytes(): number {
    return this.#context.memory.inUse
  }

  /**
   * Makes a call: offers its envelope to a replica, and brings what comes of it to its listener.
   *
   * @returns the call's number, for `cancel`.
   * @throws ServeError OVERLOADED, MESSAGE_TOO_LARGE, MALFORMED_MESSAGE; then nothing was sent.
   */
  open(now: number, requested: RequestedCall): number {
    this.#admit(requested)
    const number = this.#next++
    const call = new OpenCall(now, this.#context, { ...requested, call: number })
    try {
      call.offer(now)
    } catch (error) {
      call.drop()
      const { to, envelope } = requested
      throw ServeError.from(error).withDetails(callDetails(to, envelope))
    }
    this.#calls.set(number, call)
    return number
  }

  /** Takes a replica's message about a call. One that fits none of our calls changes none. */
  on(now: number, message: Message): void {
    const call = this.#calls.get(message.call)
    if (call === undefined) this.#onUnknown(message)
    else if (call.to === message.from) call.on(now, message)
  }

  /** Ends the call with `error` at once, and tells the replica. */
  cancel(now: number, number: number, error: ServeError): void {
    this.#calls.get(number)?.giveUp(now, error)
  }

  /** Ends every call with `error`, and tells the replicas. */
  cancelAll(now: number, error: ServeError): void {
    for (const call of this.#calls.values()) call.giveUp(now, error)
  }

  /** Takes the broker's word that the call's offer had no responder. @returns the replica, unless it has answered the offer. */
  noResponder(now: number, number: number): string | undefined {
    const call = this.#calls.get(number)
    return call?.noResponder(now) === true ? call.to : undefined
  }

  /**
   * Ends the calls to a replica that is dead or has left. One that has left said before its farewell which calls it took, so
   * a call whose offer it has not answered can go elsewhere.
   *
   * @returns calls that are still open, for `lost`: the broker may be about to say that their offer had no responder, and
   * then they can go elsewhere too.
   */
  memberGone(now: number, member: string, how: Departure): readonly number[] {
    return this.#callsTo(member)
      .filter((call) => call.replicaGone(now, how))
      .map(({ call }) => call)
  }

  /** Ends those of these calls that are still open: their replica is gone. */
  lost(now: number, numbers: readonly number[]): void {
    for (const number of numbers) this.#calls.get(number)?.lose(now, 'is gone')
  }

  /** Makes again the open offers to a member whose direct connection broke, which may have lost them. */
  pathBroken(now: number, member: string): void {
    for (const call of this.#callsTo(member)) call.pathBroken(now)
  }

  /** Ends the calls that need the broker, which is away. @param isReached - true for a member that is reached without it. */
  disconnected(now: number, isReached?: (member: string) => boolean): void {
    for (const call of this.#calls.values()) {
      if (isReached?.(call.to) === true) continue
      if (this.#untold.size < TOMBSTONES) this.#untold.set(call.call, call.to)
      call.cutOff(now, 'cannot be reached: the broker is away')
    }
  }

  /** Tells the replicas to stop working for calls that failed while the broker was away. It is back. */
  reconnected(): void {
    const error = toWireError(new ServeError('CANCELLED', 'the broker was away'))
    for (const [call, to] of this.#untold) this.#context.send(to, { type: 'cancel', call, error })
    this.#untold.clear()
  }

  /** Tells replicas which calls are done, as CalledReplicas' `sayDone`. */
  sayDone(isReached?: (member: string) => boolean): void {
    this.#context.replicas.sayDone(isReached)
  }

  /** Counts time in which nothing was heard, because this process did not listen, as no silence of the replicas. */
  missed(ms: number): void {
    for (const call of this.#calls.values()) call.missed(ms)
  }

  /** Looks after calls that do not move. */
  tick(now: number): void {
    const progress = new Map<string, number>()
    for (const { to, progressAt } of this.#calls.values()) {
      progress.set(to, Math.max(progressAt, progress.get(to) ?? progressAt))
    }
    for (const call of this.#calls.values()) call.tick(now, progress.get(call.to) ?? now)
  }

  #admit({ to, envelope, tensors }: RequestedCall): void {
    if (this.#calls.size >= MAX_OPEN_CALLS) {
      throw callError({
        reason: 'OVERLOADED',
        replica: to,
        envelope,
        text: `${MAX_OPEN_CALLS} calls to replicas are open`,
      })
    }
    const most = this.#context.settings.tensorBytesPerMember
    for (const [i, { byteLength: bytes }] of tensors.entries()) {
      if (bytes > most) throw tooLargeInput({ to, envelope }, i, { bytes, most })
    }
  }

  #callsTo(member: string): readonly OpenCall[] {
    return [...this.#calls.values()].filter(({ to }) => to === member)
  }

  /**
   * Handles an answer to a call that has ended: its replica should know. A number that this member never gave comes from a
   * stranger.
   */
  #onUnknown(message: Message): void {
    if (message.type !== 'response' && message.type !== 'accepted') return
    const { send, incomingTransfers } = this.#context
    const { call, from } = message
    if (message.type === 'response') throwAway(incomingTransfers, message)
    if (call <= 0 || call >= this.#next) return
    const error = toWireError(new ServeError('CANCELLED', 'the call has ended'))
    send(from, { type: 'cancel', call, error })
  }
}
