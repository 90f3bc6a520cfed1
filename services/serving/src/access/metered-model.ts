import { ServeError } from '@tutti/errors'
import type { Executed, ResponseSink, StepResponse, StepTimes } from '@tutti/tensor'
import type { ResolvedModel } from '../backend/inference-backend.ts'
import type { QuotaMeter } from './quota-meter.ts'

/**
 * Wraps a model so that each request counts as in work for an identity until its final response or error. It counts even after
 * its client has left, because an engine may go on with it.
 *
 * @param refused - gets the error of a request that is over the quota, and returns the error with which the request fails.
 */
export function meteredModel(
  model: ResolvedModel,
  meter: QuotaMeter,
  refused: (error: ServeError) => ServeError,
): ResolvedModel {
  const { name, version, config, isDecoupled } = model
  return {
    name,
    version,
    config,
    isDecoupled,
    labels: (output) => model.labels(output),
    execute: (request, sink, context) => {
      try {
        meter.enter()
      } catch (error) {
        return sink.fail(refused(ServeError.from(error)), 'no')
      }
      return model.execute(request, new MeteredSink(sink, meter), context)
    },
  }
}

/** Gives the place back with the last response or the failure. */
class MeteredSink implements ResponseSink {
  readonly #sink: ResponseSink
  readonly #meter: QuotaMeter

  constructor(sink: ResponseSink, meter: QuotaMeter) {
    this.#sink = sink
    this.#meter = meter
  }

  send(response: StepResponse): void {
    if (response.final) this.#meter.leave()
    this.#sink.send(response)
  }

  fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    this.#meter.leave()
    this.#sink.fail(error, executed, times)
  }

  ready(): Promise<void> | undefined {
    return this.#sink.ready?.()
  }
}
