import { isUtf8 } from 'node:buffer'
import { ServeError } from '@tutti/errors'
import { decodeBytesTensor, encodeBytesTensor, type NamedTensor } from '@tutti/tensor'

const NUL = 0
const utf8 = new TextEncoder()

/**
 * The binding carries texts as C strings: it cuts them at NUL and garbles what is not UTF-8.
 *
 * @throws ServeError INVALID_TENSOR_DATA if it would do so.
 */
export function checkTexts(model: string, { name, data }: NamedTensor): void {
  decodeBytesTensor(data).forEach((element, i) => {
    const holdsNul = element.includes(NUL)
    if (!holdsNul && isUtf8(element)) return
    const problem = holdsNul ? 'holds a NUL byte' : 'is not UTF-8'
    const message = `input '${name}' element ${i} ${problem}, want UTF-8 text without NUL for model '${model}'`
    throw new ServeError('INVALID_TENSOR_DATA', message)
  })
}

/** The elements of a BYTES tensor, as the binding takes them. */
export function toTexts(data: Uint8Array): string[] {
  // Buffer and not TextDecoder, which would drop a leading byte order mark.
  return decodeBytesTensor(data).map((e) =>
    Buffer.from(e.buffer, e.byteOffset, e.byteLength).toString('utf8'),
  )
}

/** A BYTES tensor of the texts that the binding returns. */
export function fromTexts(texts: readonly string[]): Uint8Array {
  return encodeBytesTensor(texts.map((text) => utf8.encode(text)))
}
