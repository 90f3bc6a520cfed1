import { ServeError } from '@tutti/errors'
import type { Parameter, Parameters, RequestContext } from '@tutti/tensor'

/**
 * Finds the context that a step's outputs pass to the steps that read them. It is the step's own context, unless the response
 * sets a sequence parameter. Then flags that the response does not mention become false, and an id that it does not mention
 * stays.
 *
 * @throws ServeError RESPONSE_INVALID (INVALID_ARGUMENT, Triton's text) if a parameter has the wrong kind.
 * @see triton-semantics 1.7
 */
export function overrideSequence(context: RequestContext, parameters: Parameters): RequestContext {
  const id = parameters.get('sequence_id')
  const start = parameters.get('sequence_start')
  const end = parameters.get('sequence_end')
  if (id === undefined && start === undefined && end === undefined) return context
  return {
    ...context,
    correlationId: correlationId(id) ?? context.correlationId,
    sequenceStart: flag('sequence_start', start),
    sequenceEnd: flag('sequence_end', end),
  }
}

/**
 * Builds the sequence parameters of an ensemble response. The id is text if the request's id, or the id in `made`, is text.
 *
 * @param made - context of the first output in the response that a step made.
 * @see triton-semantics 1.7 and 9.5
 */
export function sequenceParameters(request: RequestContext, made: RequestContext): Parameters {
  const { correlationId: id, sequenceStart, sequenceEnd } = made
  const asText = typeof request.correlationId === 'string' || typeof id === 'string'
  return new Map<string, Parameter>([
    [
      'sequence_id',
      asText
        ? { kind: 'string', value: String(id) }
        : { kind: 'int64', value: BigInt.asIntN(64, id) },
    ],
    ['sequence_start', { kind: 'bool', value: sequenceStart }],
    ['sequence_end', { kind: 'bool', value: sequenceEnd }],
  ])
}

function correlationId(parameter: Parameter | undefined): bigint | string | undefined {
  if (parameter === undefined) return undefined
  if (parameter.kind === 'string') return parameter.value
  if (parameter.kind === 'int64') return BigInt.asUintN(64, parameter.value)
  throw wrongKind(
    "expected parameter 'sequence_id' to be TRITONSERVER_PARAMETER_INT or TRITONSERVER_PARAMETER_STRING",
  )
}

function flag(name: string, parameter: Parameter | undefined): boolean {
  if (parameter === undefined) return false
  if (parameter.kind === 'bool') return parameter.value
  throw wrongKind(`expect parameter '${name}' to be TRITONSERVER_PARAMETER_BOOL`)
}

function wrongKind(message: string): ServeError {
  return new ServeError('RESPONSE_INVALID', message, { code: 'INVALID_ARGUMENT' })
}
