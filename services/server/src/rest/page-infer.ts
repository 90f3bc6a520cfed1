import { systemClock } from '@tutti/chassis'
import { plainName } from '@tutti/model-config'
import type { ResponseSink, StepTimes, StepTraces } from '@tutti/tensor'
import type { ResolvedModel } from '../inference-backend.ts'
import { decorateModel } from '../request/decorate.ts'
import { answerInfer } from './infer-call.ts'
import { refusePlaces } from './placed-request.ts'
import type { RestCall } from './rest-call.ts'
import type { RestReply } from './rest-reply.ts'

/** Header of an answer: the `StepSpan`s of its request, as JSON in ASCII. */
export const STEPS_HEADER = 'tutti-steps'

/** More would be no header any more. */
const MAX_SPANS = 500

/** Where the time of one execution went, in milliseconds. What is neither queue nor compute is transfer. */
export interface StepSpan {
  /** Of the ensemble; '' for the request itself, and for what a model calls. */
  readonly step: string
  readonly model: string
  /** 0 for the request itself, 1 for its steps, and so on. */
  readonly depth: number
  /** Both from the begin of the request. */
  readonly startMs: number
  endMs: number
  queueMs: number
  computeMs: number
}

/**
 * Answers `POST .../infer` of a page, and says what each step took. Its requests are their bodies, and never name memory of other
 * clients.
 */
export async function answerPageInfer(call: RestCall): Promise<RestReply> {
  const spans = new StepSpans(call.backend.identity !== undefined)
  const reply = await answerInfer(call, (_call, model, request) => {
    return { ...refusePlaces(_call, model, request), model: spans.recordModel(model) }
  })
  return { ...reply, headers: { ...reply.headers, [STEPS_HEADER]: spans.toHeader() } }
}

/** What one request does, as its steps begin and end. */
class StepSpans {
  readonly #spans: StepSpan[] = []
  readonly #startedAt = systemClock.now()
  readonly #hasIdentity: boolean

  /** @param hasIdentity - its caller may not know what models call inside, but sees the graph of its ensemble. */
  constructor(hasIdentity: boolean) {
    this.#hasIdentity = hasIdentity
  }

  recordModel(model: ResolvedModel): ResolvedModel {
    return decorateModel(model, (request, sink, o) => {
      const to = this.#begin({ step: '', model: model.name, depth: 0 }, sink)
      model.execute(request, to, { ...o, stepTraces: this.#under(1) })
    })
  }

  toHeader(): string {
    const json = JSON.stringify(
      this.#spans.map((span) => ({ ...span, model: plainName(span.model) })),
    )
    return json.replace(
      /[^\x20-\x7e]/g,
      (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )
  }

  #under(depth: number): StepTraces {
    return {
      begin: ({ name, step = '' }, _request, sink) => {
        if (this.#hasIdentity && (depth > 1 || step === '')) return [sink, this.#under(depth + 1)]
        const to = this.#begin({ step: plainName(step), model: name, depth }, sink)
        return [to, this.#under(depth + 1)]
      },
    }
  }

  #begin(o: Pick<StepSpan, 'step' | 'model' | 'depth'>, sink: ResponseSink): ResponseSink {
    if (this.#spans.length === MAX_SPANS) return sink
    const startMs = this.#elapsedMs()
    const span = { ...o, startMs, endMs: startMs, queueMs: 0, computeMs: 0 }
    this.#spans.push(span)
    const end = (times: StepTimes | undefined): void => {
      span.endMs = this.#elapsedMs()
      if (times === undefined) return
      span.queueMs = times.queueNs / 1e6
      span.computeMs = (times.computeInputNs + times.computeInferNs + times.computeOutputNs) / 1e6
    }
    return {
      send: (response) => {
        if (response.final) end(response.times)
        sink.send(response)
      },
      fail: (error, executed, times) => {
        end(times)
        sink.fail(error, executed, times)
      },
      ready: () => sink.ready?.(),
    }
  }

  #elapsedMs(): number {
    return systemClock.now() - this.#startedAt
  }
}
