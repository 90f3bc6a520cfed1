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
import type { Departure } from '../members/membership.ts'
import type { Endpoint } from './endpoint.ts'
import { type AnswerOptions, answerQuestion, askMember } from './questions.ts'
import { RemoteExecutor, type SendEnvelope, toExecuteOptions } from './remote-executor.ts'

/** For the answer to a question. */
const ASK_MS = 5000
/** Bytes that the broker has not taken, before calls are refused. */
const CONTROL_QUEUE_BYTES = 64 * 1024 * 1024

/** The options of the calls of one member. */
export interface EndpointCallsOptions extends AnswerOptions {
  readonly self: string
  readonly endpoint: Endpoint
  /** Executes the envelopes that other members send here. */
  readonly executor: FindExecutor
}

/**
 * The calls that a member makes and those that it answers, envelopes and questions alike. Every member has both sides: a router calls
 * steps, and is called by them for their models.
 */
export class EndpointCalls implements MemberQuestions {
  readonly caller: OutgoingCalls
  readonly callee: IncomingCalls
  readonly #o: EndpointCallsOptions
  /** Bytes that members take unasked. */
  readonly #unaskedBytes = new Map<string, number>()
  /** Callers that membership watches since it took their first offer. */
  readonly #watched = new Set<string>()

  constructor(o: EndpointCallsOptions) {
    this.#o = o
    const { endpoint, settings, self } = o
    const shared = {
      settings,
      send: endpoint.messages.send.bind(endpoint.messages),
      incoming: endpoint.incoming,
      outgoing: endpoint.outgoing,
      inlineLimits: endpoint.messages.inlineLimits.bind(endpoint.messages),
      unaskedBytes: (member: string) => this.#unaskedBytes.get(member) ?? 0,
      clock: o.clock,
    }
    this.caller = new OutgoingCalls(shared)
    this.callee = new IncomingCalls({ ...shared, self, execute: (job) => this.#execute(job) })
    endpoint.attach(this)
  }

  heard({ member, unaskedBytes }: Heartbeat): void {
    this.#unaskedBytes.set(member, unaskedBytes)
  }

  /** Takes a message of another member. */
  on(now: number, message: Message): void {
    switch (message.type) {
      case 'offer':
        if (this.#watches(message)) this.callee.on(now, message)
        return
      case 'response-credit':
      case 'cancel':
      case 'done':
        this.callee.on(now, message)
        return
      case 'accepted':
      case 'refused':
      case 'response':
        this.caller.on(now, message)
        return
      case 'credit':
      case 'resend':
        // Transfers go both ways, and their numbers say whose they are: each side leaves the other's alone.
        this.callee.on(now, message)
        this.caller.on(now, message)
    }
  }

  /** Work is taken only of whom we would notice going: what it holds here is let go then. */
  #watches(offer: Offer): boolean {
    const { from } = offer
    if (this.#watched.has(from)) return true
    const { endpoint, self, settings } = this.#o
    if (endpoint.membership.expect(from)) this.#watched.add(from)
    else this.callee.reject(offer, knowsTooMany(self, settings.maxMembers))
    return this.#watched.has(from)
  }

  gone(now: number, member: string, error: ServeError, how: Departure): void {
    this.#watched.delete(member)
    this.#unaskedBytes.delete(member)
    const undecided = this.caller.memberGone(now, member, how)
    if (undecided.length > 0) void this.#decide(undecided)
    this.callee.callerGone(now, member, error.message)
  }

  /** By the time that the broker answers, it has reported every offer that had no responder. */
  async #decide(undecided: readonly number[]): Promise<void> {
    const { clock, endpoint } = this.#o
    // Without the broker the calls have failed by themselves.
    await endpoint.link.control.flush().catch(() => {})
    this.caller.lost(clock.now(), undecided)
  }

  /** A model version of another member. */
  readonly executor: FindReplicaExecutor = (target, replica) =>
    new RemoteExecutor(this.#send, replica, target, this.#o.clock)

  ask(member: string, question: Question, argument: unknown, o: AskOptions): Promise<unknown> {
    const { signal, timeoutMs = ASK_MS } = o
    return askMember(this.#send, { member, question, argument, signal, timeoutMs }, this.#o)
  }

  readonly #send: SendEnvelope = (to, envelope, { tensors, ...lent }, sink, signal) => {
    const { clock } = this.#o
    let number = 0
    const onAbort = (): void => this.caller.cancel(clock.now(), number, signalError(signal))
    try {
      this.#checkCanCall(to, envelope, signal)
      const ended = (): void => signal.removeEventListener('abort', onAbort)
      number = this.caller.open(clock.now(), to, envelope, tensors, { sink, ended, ...lent })
      signal.addEventListener('abort', onAbort, { once: true })
    } catch (error) {
      sink.fail(ServeError.from(error), 'no')
    }
  }

  #checkCanCall(to: string, envelope: Envelope, signal: CancelSignal): void {
    if (signal.aborted) throw signalError(signal)
    const { link, direct } = this.#o.endpoint
    const isAway = !link.isUp && direct?.of(to) === undefined
    if (isAway) throw notExecuted(to, envelope, 'cannot be reached: the broker is away')
    const bytes = direct?.of(to)?.queuedBytes ?? link.control.unflushedBytes
    const most = CONTROL_QUEUE_BYTES
    if (bytes > most) throw queueFull(to, envelope, { bytes, most })
  }

  #execute(job: CallJob): void {
    const { key, envelope, inputs, signal } = job
    const { clock, executor, endpoint } = this.#o
    if (isQuestion(envelope)) {
      void answerQuestion(this.callee, job, this.#o)
      return
    }
    const sink: ResponseSink = {
      send: (response) => {
        this.callee.respond(clock.now(), key, response)
        if (response.final) this.callee.ended(clock.now(), key)
      },
      fail: (error, _executed, times) => {
        endpoint.events.callFailed(envelope, error)
        this.callee.failed(clock.now(), key, error, times)
        this.callee.ended(clock.now(), key)
      },
      ready: () => this.callee.ready(key),
    }
    try {
      const { context, requestedOutputs } = envelope
      const request = { context, requestedOutputs, inputs: toTensors(envelope.inputs, inputs) }
      executor(envelope).execute(request, sink, toExecuteOptions(envelope, { signal, clock }))
    } catch (error) {
      endpoint.events.callFailed(envelope, ServeError.from(error))
      this.callee.ended(clock.now(), key, error)
    }
  }
}

/** A message cannot hold more or fewer tensors than its envelope names. */
function toTensors(headers: Envelope['inputs'], tensors: readonly Uint8Array[]): NamedTensor[] {
  return headers.map(({ name, datatype, shape }, i) => {
    return { name, datatype, shape, data: tensors[i] ?? new Uint8Array() }
  })
}
