import { ServeError } from '@tutti/errors'
import type { Executed, ResponseSink, StepResponse, StepTimes } from '@tutti/tensor'
import type { ResolvedModel } from '../backend/inference-backend.ts'
import type { QuotaMeter } from './quota-meter.ts'

/**
 * A model whose requests are in work for an identity until they are answered: not until their client is, because an engine may go on
 * with a request whose client has left.
 *
 * @param refused - takes note of a request that is over the quota, before it fails.
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
