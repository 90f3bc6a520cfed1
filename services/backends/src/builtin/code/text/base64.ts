import type { OptionsOf } from '@tutti/builtins'
import { decodeBytesTensor, encodeBytesTensor } from '@tutti/tensor'
import { inputOf, misfit } from '../code-inputs.ts'
import type { OpenedCode } from '../code-step.ts'

const WHITE_SPACE = /[ \t\r\n]+/g
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

/** Opens `base64`. */
export function openBase64({ direction }: OptionsOf<'base64'>): OpenedCode {
  return {
    run: (inputs) => {
      const { shape, data } = inputOf(inputs, 'data')
      const elements = decodeBytesTensor(data)
      const made = elements.map((element, i) =>
        direction === 'decode'
          ? decode(element, i)
          : Buffer.from(toBuffer(element).toString('base64')),
      )
      return [{ name: 'data', datatype: 'BYTES', shape, data: encodeBytesTensor(made) }]
    },
  }
}

function toBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

function decode(element: Uint8Array, index: number): Uint8Array {
  const text = toBuffer(element).toString('latin1').replace(WHITE_SPACE, '')
  // Buffer.from takes anything, and leaves out the bytes that it does not understand.
  if (text.length % 4 !== 0 || !BASE64.test(text)) {
    throw misfit('data', `bytes in element ${index} that are no base64`, 'base64')
  }
  return Buffer.from(text, 'base64')
}
