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

/** Sends an envelope with its tensors to a member; everything comes to `sink`. */
export type SendEnvelope = (
  to: string,
  envelope: Envelope,
  tensors: LentTensors,
  sink: ResponseSink,
  signal: CancelSignal,
) => void

/** A model version of another process. Here a request becomes an envelope. */
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
    this.#send(this.#to, envelope, { tensors, ...(retain && { retain }) }, sink, o.signal)
  }
}

/** The envelope of a request. @param remaining - milliseconds. */
export function toEnvelope(
  target: ModelTarget,
  { context, requestedOutputs, inputs }: InferRequest,
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
    ...(isDecoupled && { isDecoupled }),
    ...trace,
  }
}

/** Makes the options that come with an envelope, for the executor that it is for. */
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
