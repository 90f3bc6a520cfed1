import type { InferenceClient, InferRequestParts } from '@tutti/protocol'
import type { Target } from '../serving.ts'
import { errorFields } from './asking.ts'

/** An HTTP call as a client makes it. */
export interface RestCase {
  readonly title: string
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly body?: unknown
}

/** What a server answers to an HTTP call: all that a client could tell apart, except times. */
export async function restAnswer(target: Target, o: RestCase): Promise<unknown> {
  const answer = await fetch(`http://127.0.0.1:${target.httpPort}/v2/${o.path}`, {
    method: o.method,
    ...(o.body !== undefined && { body: JSON.stringify(o.body) }),
  })
  const text = await answer.text()
  return {
    status: answer.status,
    type: answer.headers.get('content-type'),
    reason: answer.headers.get('tutti-error-reason'),
    body: o.path.endsWith('/stats') ? withoutTimes(text) : text,
  }
}

/** Durations and points in time differ from run to run; everything else of the statistics does not. */
function withoutTimes(text: string): unknown {
  return JSON.parse(text, (key, value: unknown) =>
    key === 'ns' || key === 'last_inference' ? 'a time' : value,
  )
}

/** What a server answers to a gRPC request: tensors to the byte, or the error. */
export async function grpcAnswer(
  client: InferenceClient,
  request: InferRequestParts,
): Promise<unknown> {
  try {
    const { modelName, modelVersion, id, parameters, outputs } = await client.infer(request)
    return {
      modelName,
      modelVersion,
      id,
      parameters: [...parameters],
      outputs: outputs.map(({ data, ...header }) => ({
        ...header,
        data: Buffer.from(data).toString('hex'),
      })),
    }
  } catch (error) {
    const { code, reason, message } = errorFields(error)
    return { code, reason, message }
  }
}
