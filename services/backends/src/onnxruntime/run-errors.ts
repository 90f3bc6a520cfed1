import { ELEMENT_TYPES } from '@tutti/builtins'
import { bug, ServeError } from '@tutti/errors'
import { countTexts } from '@tutti/model-config'
import type { NamedTensor } from '@tutti/tensor'
import type { SessionPort } from './session-contract.ts'

/*
 * Errors with which a request is answered that cannot run, or whose run has failed.
 */

/** Refuses an input with an unknown name or another datatype. @throws ServeError INVALID_REQUEST, DATATYPE_MISMATCH */
export function refuseInput(model: string, tensor: NamedTensor, port?: SessionPort): never {
  if (port === undefined) refuseName(model, 'input', tensor.name)
  const text = `input '${tensor.name}' of model '${model}': datatype ${tensor.datatype}, want ${port.datatype}`
  throw new ServeError('DATATYPE_MISMATCH', text)
}

/** Checks how many strings an input has. @throws ServeError MESSAGE_TOO_LARGE for more than `most`. */
export function checkStrings(model: string, tensor: NamedTensor, most: number): void {
  const count = countTexts(tensor)
  if (count > most) {
    const text = `input '${tensor.name}' of model '${model}': ${count} strings, want at most ${most} (--backend-config=onnxruntime,max-strings=N)`
    throw new ServeError('MESSAGE_TOO_LARGE', text)
  }
}

/** Refuses an input or output with an unknown name. @throws ServeError INVALID_REQUEST */
export function refuseName(model: string, kind: 'input' | 'output', name: string): never {
  const text = `unexpected inference ${kind} '${name}' for model '${model}'`
  throw new ServeError('INVALID_REQUEST', text)
}

/** Refuses an output with another batch size than its requests. @throws ServeError RESPONSE_INVALID */
export function refuseBatch(model: string, { name, shape }: NamedTensor, want: number): never {
  const text = `output '${name}' of model '${model}': shape [${shape.join(',')}], want ${want} in the batch dimension`
  throw new ServeError('RESPONSE_INVALID', text)
}

/** Refuses a batch output with too few elements. @throws ServeError RESPONSE_INVALID */
export function refuseScatter(
  model: string,
  { name, shape }: NamedTensor,
  want: number,
  source: string,
): never {
  const text = `output '${name}' of model '${model}': shape [${shape.join(',')}], want ${want} elements for the shapes of input '${source}'`
  throw new ServeError('RESPONSE_INVALID', text)
}

/** Refuses a run that did not make a wanted output. @throws ServeError RESPONSE_INVALID */
export function refuseMissing(model: string, name: string): never {
  const text = `output '${name}' was not produced by model '${model}'`
  throw new ServeError('RESPONSE_INVALID', text)
}

/**
 * Refuses an input whose data does not fit its shape.
 *
 * @param got - amount with its unit, such as "8 bytes"; `want` is in the same unit.
 * @throws ServeError INVALID_TENSOR_DATA
 */
export function refuseData(
  { name, datatype }: SessionPort,
  dims: readonly number[],
  got: string,
  want: number,
): never {
  const text = `input '${name}': got ${got}, want ${want} for ${datatype} of shape [${dims.join(',')}]`
  throw new ServeError('INVALID_TENSOR_DATA', text)
}

export function refuseIndex(): never {
  throw bug('a run names a tensor that its model has not')
}

/** Refuses an output with another datatype than the model declares. @throws ServeError RESPONSE_INVALID */
export function refuseType({ name, datatype }: SessionPort, type: number): never {
  const [got = type] = ELEMENT_TYPES[type] ?? []
  throw new ServeError('RESPONSE_INVALID', `output '${name}': datatype ${got}, want ${datatype}`)
}

/** Refuses an input with too many extents, or a negative one. @throws ServeError INVALID_TENSOR_DATA */
export function refuseDims({ name }: SessionPort, dims: readonly number[], most: number): never {
  const text = `input '${name}': shape [${dims.join(',')}], want at most ${most} extents of 0 or more`
  throw new ServeError('INVALID_TENSOR_DATA', text)
}

/** An exception in a kernel, of which newer runtimes say 1 and Triton's 6. */
const KERNEL_EXCEPTION = /Status Message: \/.*\.(cc|h):\d+/

/**
 * Makes the error for a run that failed in ONNX Runtime, with Triton's numbers: 2 is INVALID_ARGUMENT, 6 an exception in a
 * kernel, 1 any other failure.
 */
export function runtimeError({ code, text }: { code: number; text: string }): ServeError {
  const number = code === 1 && KERNEL_EXCEPTION.test(text) ? 6 : code
  return new ServeError('ENGINE_FAILED', `onnx runtime error ${number}: ${text}`)
}
