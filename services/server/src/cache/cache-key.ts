import { createHash } from 'node:crypto'
import type { InferRequest, RequestContext } from '@tutti/tensor'

/**
 * The key of a request: equal exactly if the same model gets the same inputs and is asked for the same outputs, with the same
 * parameters. The request's id, priority and queue timeout are no part of it.
 *
 * @param o.identity - names the loaded model or ensemble, as `CachedCall`'s.
 * @param o.outputs - names of all outputs, which a request that names none asks for.
 * @returns 64 hexadecimal digits.
 */
export function cacheKey(o: {
  readonly identity: string
  readonly request: InferRequest
  readonly outputs: readonly string[]
}): string {
  const { context, inputs, requestedOutputs: asked } = o.request
  const sorted = inputs.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  const head = JSON.stringify([
    o.identity,
    (asked.length > 0 ? asked : o.outputs).toSorted(),
    contextParts(context),
    sorted.map(({ name, datatype, shape, data }) => [name, datatype, shape, data.byteLength]),
  ])
  // The head's length comes first, and it has the lengths of all that follows: nothing runs into the next.
  const hash = createHash('sha256').update(`${Buffer.byteLength(head)}:${head}`)
  for (const { data } of sorted) hash.update(data)
  return hash.digest('hex')
}

/** What a model may answer by, beside its inputs. */
function contextParts({ correlationId, sequenceStart, sequenceEnd, parameters }: RequestContext) {
  return [
    [typeof correlationId, String(correlationId)],
    sequenceStart,
    sequenceEnd,
    [...parameters]
      .map(([name, { kind, value }]) => [name, kind, String(value)])
      .toSorted(([a = ''], [b = '']) => (a < b ? -1 : 1)),
  ]
}
