import type { Parameter, Parameters, StepRequest } from '@tutti/tensor'

function parameterJson(parameter: Parameter): string {
  if (parameter.kind !== 'double') {
    return parameter.kind === 'string' ? JSON.stringify(parameter.value) : String(parameter.value)
  }
  const { value } = parameter
  // Python's json reads NaN and Infinity as they stand; a whole double must not become an int.
  return Number.isInteger(value) && Math.abs(value) < 1e21 ? value.toFixed(1) : String(value)
}

/** Parameters as the JSON text that a model gets: 64-bit integers with all digits. */
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
 * Makes the JSON of what a model may ask about a request besides its tensors; '' if there is nothing but defaults.
 * Names are those that python/tutti_worker/frames.py reads. The JSON of the parameters, which a model gets as it is, follows a
 * line break, which JSON of ours has nowhere else: as a text within JSON it would be several times as long.
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
