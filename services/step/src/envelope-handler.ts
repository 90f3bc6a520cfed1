import { ServeError } from '@tutti/errors'
import type { Envelope } from '@tutti/protocol'
import type { NamedTensor, TensorRef } from '@tutti/tensor'
import type { EnvelopeHandler, EnvelopeSink } from '@tutti/transport'
import type { Serving } from './hosted-model.ts'
import type { ModelTable } from './model-table.ts'

/**
 * Makes the entry for envelopes: finds the model version, refuses another revision, checks the request and hands it to the
 * version's scheduler. Whatever is wrong comes back as one final response with the error.
 */
export function createEnvelopeHandler(
  table: Pick<ModelTable, 'get' | 'retired'>,
  replica: string,
): EnvelopeHandler {
  return (envelope, tensors, sink, { signal }) => {
    try {
      const serving = findServing(table, envelope)
      const { context, requestedOutputs, remainingMs } = envelope
      const inputs = toTensors(envelope, tensors)
      const request = serving.check({ context, inputs, requestedOutputs })
      return serving.scheduler.submit(request, sink, {
        signal,
        envelope,
        ...(remainingMs !== undefined && { remainingMs }),
      })
    } catch (error) {
      refuse(sink, envelope, replica, ServeError.from(error))
      return Promise.resolve()
    }
  }
}

/** The current revision, or one that this request pinned before it was replaced or unloaded. */
function findServing(table: Pick<ModelTable, 'get' | 'retired'>, envelope: Envelope): Serving {
  const version = table.get(envelope.model)?.versions.get(envelope.version)
  if (version?.serving !== undefined && version.revision === envelope.revision) {
    return version.serving
  }
  return table.retired(envelope) ?? refuseVersion(table, envelope)
}

function refuseVersion(table: Pick<ModelTable, 'get'>, envelope: Envelope): never {
  const { model: name, version: number } = envelope
  const unknown = `Request for unknown model: '${name}'`
  const model = table.get(name)
  if (model === undefined) throw new ServeError('MODEL_NOT_FOUND', `${unknown} is not found`)
  const version = model.versions.get(number)
  if (version === undefined) {
    throw new ServeError('MODEL_NOT_FOUND', `${unknown} version ${number} is not found`)
  }
  if (version.serving === undefined) {
    throw new ServeError('MODEL_NOT_READY', `${unknown} version ${number} is not at ready state`)
  }
  throw new ServeError(
    'REVISION_GONE',
    `model '${name}' version ${number}: revision ${envelope.revision} is pinned, ${version.revision} is served`,
  )
}

function toTensors(envelope: Envelope, tensors: readonly TensorRef[]): NamedTensor[] {
  const { inputs } = envelope
  if (tensors.length !== inputs.length) {
    throw new ServeError(
      'MALFORMED_MESSAGE',
      `envelope of model '${envelope.model}': ${tensors.length} tensors, want ${inputs.length}`,
    )
  }
  return inputs.map(({ name, datatype, shape }, i) => ({
    name,
    datatype,
    shape,
    data: tensors[i]?.bytes ?? new Uint8Array(),
  }))
}

function refuse(sink: EnvelopeSink, envelope: Envelope, replica: string, error: ServeError): void {
  const details = { model: envelope.model, version: String(envelope.version), replica }
  sink.send({
    index: 0,
    final: true,
    outputs: [],
    parameters: new Map(),
    error: error.withDetails(details),
  })
}
