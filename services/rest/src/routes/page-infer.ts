import { systemClock } from '@tutti/chassis'
import { STEPS_HEADER } from '@tutti/protocol'
import { observeModel } from '@tutti/serving'
import { type RecordedSteps, StepSpans, withoutInner } from '@tutti/telemetry'
import type { RestReply } from '../answers/rest-reply.ts'
import { refusePlaces } from '../call/placed-request.ts'
import type { RestCall } from '../call/rest-call.ts'
import { answerInfer } from './infer-call.ts'

/** Header with the count of steps that STEPS_HEADER leaves out. STEPS_HEADER has a request's `StepSpan`s as JSON in ASCII. */
export const STEPS_LEFT_OUT_HEADER = 'tutti-steps-left-out'

/** Browsers take up to 256 KiB of headers. */
const MAX_HEADER_BYTES = 128 * 1024

/**
 * Answers `POST .../infer` of a page. Headers have the time of each step, also if the request fails. Tensors in shared memory are
 * refused, since it belongs to other clients.
 */
export async function answerPageInfer(call: RestCall): Promise<RestReply> {
  const spans = new StepSpans(systemClock)
  try {
    return await answerInfer(call, (_call, model, request) => {
      const recorded = observeModel(model, spans, { clock: systemClock })
      return { ...refusePlaces(_call, model, request), model: recorded }
    })
  } finally {
    const recorded = spans.read()
    const isHidden = call.backend.identity !== undefined
    for (const [name, value] of toHeaders(isHidden ? withoutInner(recorded) : recorded)) {
      call.setHeader(name, value)
    }
  }
}

/** Writes the first spans into a header, as many as it may hold, and the count of those left out into another. */
export function toHeaders({ spans, leftOut }: RecordedSteps): ReadonlyMap<string, string> {
  const texts: string[] = []
  let byteLength = 2
  for (const span of spans) {
    const text = toAscii(JSON.stringify(span))
    byteLength += text.length + 1
    if (byteLength > MAX_HEADER_BYTES) break
    texts.push(text)
  }
  const missing = leftOut + spans.length - texts.length
  const headers = new Map([[STEPS_HEADER, `[${texts.join(',')}]`]])
  return missing === 0 ? headers : headers.set(STEPS_LEFT_OUT_HEADER, String(missing))
}

function toAscii(json: string): string {
  return json.replace(
    /[^\x20-\x7e]/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
