import { isTimeOver } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Callee, OnError } from '@tutti/graph'
import type { Executed, ResponseSink, StepResponse, StepTimes } from '@tutti/tensor'
import { lookupStep } from '../catalog/catalog.ts'
import type { ModelCall } from './model-call.ts'
import { noteStep } from './note-step.ts'
import type { RequestDependencies } from './request-dependencies.ts'
import type { StepCall } from './step-call.ts'

/**
 * Calls another model with the request of a step that has failed for good. A failure of that model is the step's, and its details have
 * the first one. A request that is cancelled, whose time is over, or that has a response already gets no fallback.
 *
 * @param callFallback - calls the model with which the call is.
 */
export function withFallback(
  onError: OnError | undefined,
  callFallback: StepCall,
  next: StepCall,
): StepCall {
  if (onError?.kind !== 'fallback') return next
  return (o, call, sink) =>
    next(o, call, new FallbackCall({ o, call, sink }, onError, callFallback))
}

/** Tells whether a request has ended meanwhile: nothing more is done for it. */
export function isOver(
  { clock }: Pick<RequestDependencies, 'clock'>,
  { context }: Pick<ModelCall, 'context'>,
): boolean {
  return context.signal.aborted || isTimeOver(context, clock)
}

interface Asked {
  readonly o: RequestDependencies
  readonly call: ModelCall
  readonly sink: ResponseSink
}

class FallbackCall implements ResponseSink {
  readonly #asked: Asked
  readonly #fallback: Callee
  readonly #callFallback: StepCall
  #hasResponded = false

  constructor(asked: Asked, fallback: Callee, callFallback: StepCall) {
    this.#asked = asked
    this.#fallback = fallback
    this.#callFallback = callFallback
  }

  send(response: StepResponse): void {
    this.#hasResponded = true
    this.#asked.sink.send(response)
  }

  fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    const { o, call, sink } = this.#asked
    const { target } = call
    if (this.#hasResponded || isOver(o, call)) return sink.fail(error, executed, times)
    call.addTimes?.(times)
    noteStep(o, call, { what: 'fellBack' })
    const last: ResponseSink = {
      send: (response) => sink.send(response),
      fail: (second, ...rest) => sink.fail(this.#afterBoth(second, error), ...rest),
      ready: () => sink.ready?.(),
    }
    let fallback: ModelCall
    try {
      // The fallback of a built-in is a model.
      const { program: _, ...request } = call.request
      const other = lookupStep(target.catalog, this.#fallback)
      fallback = { ...call, request, target: other, isFallback: true }
    } catch (thrown) {
      return last.fail(ServeError.from(thrown), 'no')
    }
    this.#callFallback(o, fallback, last)
  }

  ready(): Promise<void> | undefined {
    return this.#asked.sink.ready?.()
  }

  #afterBoth(second: ServeError, first: ServeError): ServeError {
    const firstError = `${first.reason}: ${first.message}`
    return second.withDetails({ model: this.#fallback.model, firstError })
  }
}
