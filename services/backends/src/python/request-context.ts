import type { Parameter, Parameters, StepRequest } from '@tutti/tensor'

function parameterJson(parameter: Parameter): string {
  if (parameter.kind !== 'double') {
    return parameter.kind === 'string' ? JSON.stringify(parameter.value) : String(parameter.value)
  }
  const { value } = parameter
  // Python's json reads NaN and Infinity as they stand; a whole double must not become an int.
  return Number.isInteger(value) && Math.abs(value) < 1e21 ? value.toFixed(1) : String(value)
}

/** Writes parameters as the JSON text that a model gets: 64-bit integers have all digits. */
export function parametersJson(parameters: Parameters): string {
  const members = [...parameters].map(
    ([name, parameter]) => `${JSON.stringify(name)}:${parameterJson(parameter)}`,
  )
  return `{${members.join(',')}}`
}

function correlationJson(id: bigint | string): string {
  if (typeof id === 'bigint') return id === 0n ? '' : `"correlation_id":${id}`
  // An empty text is none, too, but a model sees it as the text that it is.
  return `"correlation_id":${JSON.stringify(id)}`
}

/**
 * Makes the JSON of the request fields that a model may read besides its tensors; '' if all have their defaults. The names are
 * those that python/tutti_worker/frames.py reads. The JSON of the parameters, which a model gets unchanged, follows a line break,
 * which our JSON has nowhere else. As a text within JSON it would be several times as long.
 */
export function contextJson({ context, requestedOutputs }: StepRequest): string {
  const { id, timeoutUs, priority, parameters } = context
  const flags = Number(context.sequenceStart) + 2 * Number(context.sequenceEnd)
  const members = [
    id === '' ? '' : `"id":${JSON.stringify(id)}`,
    correlationJson(context.correlationId),
    flags === 0 ? '' : `"flags":${flags}`,
    timeoutUs === 0n ? '' : `"timeout":${timeoutUs}`,
    priority === 0n ? '' : `"priority":${priority}`,
    requestedOutputs.length === 0 ? '' : `"outputs":${JSON.stringify(requestedOutputs)}`,
  ].filter((member) => member !== '')
  const json = members.length === 0 ? '' : `{${members.join(',')}}`
  return parameters.size === 0 ? json : `${json}\n${parametersJson(parameters)}`
}
