import type { CallContext, Clock } from '@tutti/chassis'
import { openCallScope } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Envelope } from '@tutti/protocol'
import type { InferRequest, ResponseSink, TensorRef } from '@tutti/tensor'
import type { EnvelopeHandler, EnvelopeSink } from '@tutti/transport'

/** What bounds the requests that models make to other models (BLS). */
export interface NestingBounds {
  /** Models that may have called one another up to a request. */
  readonly maxDepth: number
  /** Such requests at the same time. */
  readonly maxRequests: number
}

export const NESTING_DEFAULTS: NestingBounds = { maxDepth: 10, maxRequests: 1024 }

/** A model that a nested request was resolved to. */
export interface NestedTarget {
  readonly isDecoupled: boolean
  execute(
    request: InferRequest,
    sink: ResponseSink,
    context: CallContext,
    callers: readonly string[],
  ): void
}

export interface NestedRequestsOptions {
  readonly bounds: NestingBounds
  readonly clock: Clock
  /** @throws ServeError as for a client's request. '' is the latest version. */
  resolve(model: string, version: string): NestedTarget
}

/**
 * Takes the requests that models make while they execute. They are treated like a client's, but for three things: they belong
 * to a request that is admitted already, so the doors' bounds do not count them and this one does; they are taken while the
 * router drains; and how deep they nest is bounded.
 */
export function createNestedHandler(o: NestedRequestsOptions): EnvelopeHandler {
  let open = 0
  return async (envelope, tensors, sink, { signal }) => {
    open += 1
    const { remainingMs } = envelope
    const scope = openCallScope({
      clock: o.clock,
      parent: signal,
      ...(remainingMs !== undefined && { remainingMs }),
    })
    try {
      if (open > o.bounds.maxRequests) throw tooMany(o.bounds.maxRequests)
      await execute(o, { envelope, tensors, context: withTrace(scope.context, envelope) }, sink)
    } catch (error) {
      sink.send({
        index: 0,
        final: true,
        outputs: [],
        parameters: new Map(),
        error: ServeError.from(error),
      })
    } finally {
      scope.close()
      open -= 1
    }
  }
}

interface NestedRequest {
  readonly envelope: Envelope
  readonly tensors: readonly TensorRef[]
  readonly context: CallContext
}

/** Resolves after the final response. @throws ServeError before anything was executed. */
function execute(
  o: NestedRequestsOptions,
  { envelope, tensors, context }: NestedRequest,
  sink: EnvelopeSink,
): Promise<void> {
  const { model, version, callers = [] } = envelope
  if (callers.length > o.bounds.maxDepth) throw tooDeep(envelope, o.bounds.maxDepth)
  const target = o.resolve(model, version === 0 ? '' : String(version))
  if (target.isDecoupled && envelope.isDecoupled !== true) throw decoupled(model)
  let index = 0
  return new Promise((resolve) => {
    const inner: ResponseSink = {
      send: ({ outputs, parameters, final }) => {
        sink.send({ index: index++, final, outputs, parameters })
        if (final) resolve()
      },
      fail: (error) => {
        sink.send({ index: index++, final: true, outputs: [], parameters: new Map(), error })
        resolve()
      },
      ready: () => sink.room?.(),
    }
    target.execute(toRequest(envelope, tensors), inner, context, callers)
  })
}

function toRequest(envelope: Envelope, tensors: readonly TensorRef[]): InferRequest {
  return {
    context: envelope.context,
    inputs: envelope.inputs.map((input, i) => ({
      ...input,
      data: tensors[i]?.bytes ?? new Uint8Array(),
    })),
    requestedOutputs: envelope.requestedOutputs,
  }
}

function withTrace(context: CallContext, { traceparent, tracestate }: Envelope): CallContext {
  if (traceparent === undefined) return context
  return {
    ...context,
    trace: tracestate === undefined ? { traceparent } : { traceparent, tracestate },
  }
}

function tooDeep({ callers = [], model }: Envelope, maxDepth: number): ServeError {
  const chain = [...callers, model].map((name) => `'${name}'`).join(' calls ')
  return new ServeError(
    'NESTING_TOO_DEEP',
    `${chain}: ${callers.length} calls deep, want at most ${maxDepth}`,
    { details: { model } },
  )
}

function tooMany(bound: number): ServeError {
  const text = `router is overloaded: ${bound} requests of models are in flight, the bound is ${bound}`
  return new ServeError('OVERLOADED', text)
}

/** Triton's words. */
function decoupled(model: string): ServeError {
  return new ServeError(
    'UNSUPPORTED',
    `Model ${model} is using the decoupled transaction policy. The current BLS request call doesn't support models using the decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' calls for decoupled models.`,
    { details: { model } },
  )
}
