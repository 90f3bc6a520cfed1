import { DONE_LIMIT } from '@tutti/protocol'
import { mostUnaskedBytes } from '../transfers/incoming-transfers.ts'
import type { MessagingContext } from './call.ts'

/** Bytes that may go before their receiver asks. */
export interface UnaskedBytes {
  /** Bytes of inputs, to the replica. */
  readonly inputs: number
  /** Bytes of responses, from it. */
  readonly responses: number
}

/** The state that all calls of ours to one replica share. */
interface CalledReplica {
  /** Calls that are open, and the bytes of theirs that may go unasked. */
  calls: number
  inputs: number
  responses: number
  /** Calls that are done and of which it does not know that: the next offer says so, or the next tick. */
  done: number[]
}

/** Counts what our calls to each replica send and take unasked, and remembers which of them are done. */
export class CalledReplicas {
  readonly #context: MessagingContext
  readonly #replicas = new Map<string, CalledReplica>()
  /** Bytes of responses that all replicas together may send unasked. */
  #responses = 0

  constructor(context: MessagingContext) {
    this.#context = context
  }

  /** Computes the bytes that the next call may send unasked: for responses one whole tensor, or none if other calls use the rest. */
  unaskedFor(to: string): UnaskedBytes {
    const { settings, unaskedBytes } = this.#context
    const { inputs = 0, responses = 0 } = this.#replicas.get(to) ?? {}
    const left = Math.min(
      mostUnaskedBytes(settings) - this.#responses,
      settings.creditBytes - responses,
    )
    return {
      inputs: Math.min(unaskedBytes(to), settings.creditBytes) - inputs,
      responses: settings.wholeLimitBytes <= left ? settings.wholeLimitBytes : 0,
    }
  }

  opened(to: string, bytes: UnaskedBytes): void {
    this.#count(to, bytes, 1)
  }

  closed(to: string, bytes: UnaskedBytes): void {
    this.#count(to, bytes, -1)
  }

  /** Lists the calls that the next offer says are done. */
  doneCalls(to: string): readonly number[] {
    return this.#replicas.get(to)?.done ?? []
  }

  /** Forgets those calls: the offer has said them. */
  saidDone(to: string): void {
    const replica = this.#replicas.get(to)
    if (replica !== undefined && replica.done.length > 0) replica.done = []
  }

  /** Notes that the replica may forget the call; it is told with the next offer, or at the next tick. */
  done(to: string, call: number): void {
    const done = this.#replicas.get(to)?.done
    if (done !== undefined && done.length < DONE_LIMIT) done.push(call)
    else this.#context.send(to, { type: 'done', call })
  }

  /** Tells the replicas, or those that are reached now, which calls are done, where no offer has said so. */
  sayDone(isReached?: (member: string) => boolean): void {
    for (const [to, replica] of this.#replicas) {
      if (isReached?.(to) === false) continue
      for (const call of replica.done.splice(0)) this.#context.send(to, { type: 'done', call })
      if (replica.calls === 0) this.#replicas.delete(to)
    }
  }

  #count(to: string, { inputs, responses }: UnaskedBytes, by: 1 | -1): void {
    const replica = this.#replicas.get(to) ?? { calls: 0, inputs: 0, responses: 0, done: [] }
    this.#replicas.set(to, replica)
    replica.calls += by
    replica.inputs += by * inputs
    replica.responses += by * responses
    this.#responses += by * responses
  }
}
