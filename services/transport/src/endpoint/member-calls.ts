import { signalError } from '@tutti/chassis'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { Envelope, Heartbeat, Message } from '@tutti/protocol'
import type { FindExecutor, NamedTensor, ResponseSink } from '@tutti/tensor'
import type { CallJob, Offer } from '../calls/call.ts'
import { knowsTooMany, notExecuted, queueFull } from '../calls/call-errors.ts'
import { isQuestion } from '../calls/call-slots.ts'
import { IncomingCalls } from '../calls/incoming-calls.ts'
import { OutgoingCalls } from '../calls/outgoing-calls.ts'
import type { AskOptions, FindReplicaExecutor, MemberQuestions, Question } from '../endpoints.ts'
import type { Departure, Membership } from '../members/membership.ts'
import type { EndpointMessages } from './endpoint-messages.ts'
import type { MemberContext } from './member-context.ts'
import { answerQuestion, askMember, type QuestionContext } from './questions.ts'
import { RemoteExecutor, type SendEnvelope, toExecuteOptions } from './remote-executor.ts'

/** Time for the answer to a question. */
const ASK_MS = 5000
/** Bytes that the broker has not taken, before calls are refused. */
const CONTROL_QUEUE_BYTES = 64 * 1024 * 1024

/** The parts of a member that its calls use. */
export interface MemberCallsContext extends MemberContext, QuestionContext {
  readonly messages: EndpointMessages
  readonly membership: Membership
  /** Executes the envelopes that other members send here. */
  readonly executor: FindExecutor
}

/**
 * The calls that a member makes and those that it answers, envelopes and questions alike. Every member has both sides: a router
 * calls steps, and is called by them for their models.
 */
export class MemberCalls implements MemberQuestions {
  readonly outgoingCalls: OutgoingCalls
  readonly incomingCalls: IncomingCalls
  readonly #context: MemberCallsContext
  /** Bytes that members take unasked. */
  readonly #unaskedBytes = new Map<string, number>()
  /** Callers that membership watches since it took their first offer. */
  readonly #watched = new Set<string>()

  constructor(context: MemberCallsContext) {
    this.#context = context
    const { messages } = context
    const shared = {
      ...context,
      send: messages.send.bind(messages),
      inlineLimits: messages.inlineLimits.bind(messages),
      unaskedBytes: (member: string) => this.#unaskedBytes.get(member) ?? 0,
    }
    this.outgoingCalls = new OutgoingCalls(shared)
    this.incomingCalls = new IncomingCalls({ ...shared, execute: (job) => this.#execute(job) })
  }

  heard({ member, unaskedBytes }: Heartbeat): void {
    this.#unaskedBytes.set(member, unaskedBytes)
  }

  /** Takes a message of another member. */
  on(now: number, message: Message): void {
    switch (message.type) {
      case 'offer':
        if (this.#watches(message)) this.incomingCalls.on(now, message)
        return
      case 'response-credit':
      case 'cancel':
      case 'done':
        this.incomingCalls.on(now, message)
        return
      case 'accepted':
      case 'refused':
      case 'response':
        this.outgoingCalls.on(now, message)
        return
      case 'credit':
      case 'resend':
        // Transfers go both ways, and their numbers say whose they are: each side leaves the other's alone.
        this.incomingCalls.on(now, message)
        this.outgoingCalls.on(now, message)
    }
  }

  /**
   * Tells whether this member would notice that the caller is gone. Only then it takes work, because it must free what a gone
   * caller holds.
   */
  #watches(offer: Offer): boolean {
    const { from } = offer
    if (this.#watched.has(from)) return true
    const { membership, self, settings } = this.#context
    if (membership.expect(from)) this.#watched.add(from)
    else this.incomingCalls.reject(offer, knowsTooMany(self, settings.maxMembers))
    return this.#watched.has(from)
  }

  gone(now: number, member: string, error: ServeError, how: Departure): void {
    this.#watched.delete(member)
    this.#unaskedBytes.delete(member)
    const undecided = this.outgoingCalls.memberGone(now, member, how)
    if (undecided.length > 0) void this.#decide(undecided)
    this.incomingCalls.callerGone(now, member, error.message)
  }

  /** Ends the calls that need the broker, which is away. @param isReached - true for a member that is reached without it. */
  disconnected(isReached: (member: string) => boolean): void {
    const now = this.#context.clock.now()
    this.outgoingCalls.disconnected(now, isReached)
    this.incomingCalls.disconnected(now, isReached)
  }

  /** Tells other members how calls ended while the broker was away. It is back. */
  reconnected(): void {
    this.outgoingCalls.reconnected()
    this.incomingCalls.reconnected()
  }

  /** Counts time in which this process stood still or hardly ran as no silence of others. @param ms - ListenedTime's. */
  missed(ms: number): void {
    this.outgoingCalls.missed(ms)
    this.incomingCalls.missed(ms)
  }

  /** Looks after calls that do not move. @param isReached - true for a member that is reached; undefined if all are. */
  tick(now: number, isReached: ((member: string) => boolean) | undefined): void {
    this.outgoingCalls.sayDone(isReached)
    this.outgoingCalls.tick(now)
    this.incomingCalls.tick(now)
  }

  /**
   * Ends all calls. Those from here last: who called learns from the farewell that its call is lost, not what failed below it.
   */
  close(why: string): void {
    const now = this.#context.clock.now()
    this.incomingCalls.drain()
    this.incomingCalls.disconnected(now)
    this.outgoingCalls.cancelAll(now, new ServeError('CANCELLED', why))
    this.outgoingCalls.sayDone()
  }

  /** Decides about offers once the broker has answered: by then it has reported every offer that had no responder. */
  async #decide(undecided: readonly number[]): Promise<void> {
    const { clock, link } = this.#context
    // Without the broker the calls have failed by themselves.
    await link.control.flush().catch(() => {})
    this.outgoingCalls.lost(clock.now(), undecided)
  }

  /** Gives the executor of a model version of another member. */
  readonly executor: FindReplicaExecutor = (target, replica) =>
    new RemoteExecutor(this.#send, replica, target, this.#context.clock)

  ask(member: string, question: Question, argument: unknown, o: AskOptions): Promise<unknown> {
    const { signal, timeoutMs = ASK_MS } = o
    return askMember(this.#send, { member, question, argument, signal, timeoutMs }, this.#context)
  }

  readonly #send: SendEnvelope = ({ to, envelope, tensors, retain, sink, signal }) => {
    const { clock } = this.#context
    let number = 0
    const onAbort = (): void => this.outgoingCalls.cancel(clock.now(), number, signalError(signal))
    try {
      this.#checkCanCall(to, envelope, signal)
      const ended = (): void => signal.removeEventListener('abort', onAbort)
      const listener = { sink, ended, ...(retain && { retain }) }
      number = this.outgoingCalls.open(clock.now(), { to, envelope, tensors, listener })
      signal.addEventListener('abort', onAbort, { once: true })
    } catch (error) {
      sink.fail(ServeError.from(error), 'no')
    }
  }

  #checkCanCall(to: string, envelope: Envelope, signal: CancelSignal): void {
    if (signal.aborted) throw signalError(signal)
    const { link, direct } = this.#context
    const isAway = !link.isUp && direct?.of(to) === undefined
    if (isAway) throw notExecuted(to, envelope, 'cannot be reached: the broker is away')
    const bytes = direct?.of(to)?.queuedBytes ?? link.control.unflushedBytes
    const most = CONTROL_QUEUE_BYTES
    if (bytes > most) throw queueFull(to, envelope, { bytes, most })
  }

  #execute(job: CallJob): void {
    const { key, envelope, inputs, signal } = job
    const { clock, executor, events } = this.#context
    if (isQuestion(envelope)) {
      void answerQuestion(this.incomingCalls, job, this.#context)
      return
    }
    const sink: ResponseSink = {
      send: (response) => {
        this.incomingCalls.respond(clock.now(), key, response)
        if (response.final) this.incomingCalls.ended(clock.now(), key)
      },
      fail: (error, _executed, times) => {
        events.callFailed(envelope, error)
        this.incomingCalls.failed(clock.now(), key, { error, times })
        this.incomingCalls.ended(clock.now(), key)
      },
      ready: () => this.incomingCalls.ready(key),
    }
    try {
      const { context, requestedOutputs, program } = envelope
      const tensors = toTensors(envelope.inputs, inputs)
      const named = program === undefined ? {} : { program }
      const request = { context, requestedOutputs, inputs: tensors, ...named }
      executor(envelope).execute(request, sink, toExecuteOptions(envelope, { signal, clock }))
    } catch (error) {
      events.callFailed(envelope, ServeError.from(error))
      this.incomingCalls.ended(clock.now(), key, error)
    }
  }
}

/** Joins headers and tensors. A message cannot hold more or fewer tensors than its envelope names. */
function toTensors(headers: Envelope['inputs'], tensors: readonly Uint8Array[]): NamedTensor[] {
  return headers.map(({ name, datatype, shape }, i) => {
    return { name, datatype, shape, data: tensors[i] ?? new Uint8Array() }
  })
}
