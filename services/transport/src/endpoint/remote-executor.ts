import { type Clock, remainingMs } from '@tutti/chassis'
import type { CancelSignal } from '@tutti/errors'
import type { Envelope } from '@tutti/protocol'
import type {
  ExecuteOptions,
  Executor,
  InferRequest,
  ModelTarget,
  ResponseSink,
} from '@tutti/tensor'
import type { LentTensors } from '../calls/call.ts'

/** An envelope to send, with the bytes of its inputs. */
export interface EnvelopeToSend extends LentTensors {
  readonly to: string
  readonly envelope: Envelope
  /** Takes the responses, or the failure. */
  readonly sink: ResponseSink
  /** Cancels the call when it aborts. */
  readonly signal: CancelSignal
}

/** Sends an envelope to a member. It does not throw: a failure comes to the sink too. */
export type SendEnvelope = (sent: EnvelopeToSend) => void

/** Executes requests to a model version of another process: makes an envelope of each and sends it. */
export class RemoteExecutor implements Executor {
  readonly #send: SendEnvelope
  readonly #to: string
  readonly #target: ModelTarget
  readonly #clock: Clock

  constructor(send: SendEnvelope, to: string, target: ModelTarget, clock: Clock) {
    this.#send = send
    this.#to = to
    this.#target = target
    this.#clock = clock
  }

  execute(request: InferRequest, sink: ResponseSink, o: ExecuteOptions): void {
    const envelope = toEnvelope(this.#target, request, o, remainingMs(o, this.#clock))
    const tensors = request.inputs.map((input) => input.data)
    const { retain } = request
    const lent = { tensors, ...(retain && { retain }) }
    this.#send({ to: this.#to, envelope, ...lent, sink, signal: o.signal })
  }
}

/** Makes the envelope of a request. @param remaining - milliseconds that its deadline leaves; undefined without one. */
export function toEnvelope(
  target: ModelTarget,
  { context, requestedOutputs, inputs, program }: InferRequest,
  { trace, origin }: ExecuteOptions,
  remaining: number | undefined,
): Envelope {
  const { requestKey = '', step = '', attempt = 1, callers, isDecoupled } = origin ?? {}
  return {
    requestKey,
    model: target.model,
    version: target.version,
    revision: target.revision,
    step,
    attempt,
    context,
    requestedOutputs,
    inputs,
    ...(remaining !== undefined && { remainingMs: remaining }),
    ...(callers !== undefined && { callers }),
    ...(program !== undefined && { program }),
    ...(isDecoupled && { isDecoupled }),
    ...trace,
  }
}

/** Makes the options for the executor of an envelope from what the envelope says of its request. */
export function toExecuteOptions(
  envelope: Envelope,
  o: { readonly signal: CancelSignal; readonly clock: Clock },
): ExecuteOptions {
  const { requestKey, step, attempt, callers, isDecoupled, remainingMs: left } = envelope
  const { traceparent, tracestate } = envelope
  return {
    signal: o.signal,
    origin: {
      requestKey,
      step,
      attempt,
      ...(callers !== undefined && { callers }),
      ...(isDecoupled && { isDecoupled }),
    },
    ...(left !== undefined && { deadlineAt: o.clock.now() + left }),
    ...(traceparent !== undefined && {
      trace: { traceparent, ...(tracestate !== undefined && { tracestate }) },
    }),
  }
}
