import { ServeError } from '@tutti/errors'
import type { NamedTensor } from '@tutti/tensor'
import type { SessionPort } from './session-contract.ts'

/*
 * What a request is answered with that cannot run, or whose run has failed.
 */

/** @throws ServeError INVALID_REQUEST, DATATYPE_MISMATCH */
export function refuseInput(model: string, tensor: NamedTensor, port?: SessionPort): never {
  if (port === undefined) refuseName(model, 'input', tensor.name)
  const text = `input '${tensor.name}' of model '${model}': datatype ${tensor.datatype}, want ${port.datatype}`
  throw new ServeError('DATATYPE_MISMATCH', text)
}

/** @throws ServeError INVALID_REQUEST */
export function refuseName(model: string, kind: 'input' | 'output', name: string): never {
  const text = `unexpected inference ${kind} '${name}' for model '${model}'`
  throw new ServeError('INVALID_REQUEST', text)
}

/** @throws ServeError RESPONSE_INVALID */
export function refuseBatch(model: string, { name, shape }: NamedTensor, want: number): never {
  const text = `output '${name}' of model '${model}': shape [${shape.join(',')}], want ${want} in the batch dimension`
  throw new ServeError('RESPONSE_INVALID', text)
}

/** @throws ServeError RESPONSE_INVALID */
export function refuseScatter(
  model: string,
  { name, shape }: NamedTensor,
  want: number,
  source: string,
): never {
  const text = `output '${name}' of model '${model}': shape [${shape.join(',')}], want ${want} elements for the shapes of input '${source}'`
  throw new ServeError('RESPONSE_INVALID', text)
}

/** @throws ServeError RESPONSE_INVALID */
export function refuseMissing(model: string, name: string): never {
  const text = `output '${name}' was not produced by model '${model}'`
  throw new ServeError('RESPONSE_INVALID', text)
}

/**
 * ONNX Runtime's status codes by what its text says: the binding drops the number. 2 is INVALID_ARGUMENT, 6 an exception
 * in a kernel, 1 any other failure.
 */
function statusCode(text: string): number {
  if (/^(Got invalid dimensions|Invalid rank|Unexpected input data type)/.test(text)) return 2
  if (/Status Message: \/.*\.(cc|h):\d+/.test(text)) return 6
  return 1
}

/** @param extra - the runtime's text, as it came behind a reply. */
export function runtimeError(extra: unknown): ServeError {
  const text = typeof extra === 'string' ? extra : 'unknown'
  return new ServeError('ENGINE_FAILED', `onnx runtime error ${statusCode(text)}: ${text}`)
}
