import type { OptionsOf } from '@tutti/builtins'
import { bytesElements } from '@tutti/tensor'
import { inputOf, misfit } from '../code-inputs.ts'
import type { OpenedCode } from '../code-step.ts'
import { TextWriter } from './text-writer.ts'

/** Bytes that are encoded at a time, a multiple of three: a string of Node's has half a gigabyte at most. */
const CHUNK_BYTES = 3 * 2 ** 16

const SPACES = new Set(Buffer.from(' \t\r\n'))
const PADDING = 0x3d
/** The number of each digit, by its character. */
const DIGITS = new Map(
  [...Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/')].map(
    (byte, i) => [byte, i],
  ),
)
const [NO_DIGIT, SPACE] = [0xff, 0xfe]
const VALUES = Uint8Array.from({ length: 256 }, (_, byte) =>
  SPACES.has(byte) ? SPACE : (DIGITS.get(byte) ?? NO_DIGIT),
)

/** Opens `base64`. */
export function openBase64({ direction }: OptionsOf<'base64'>): OpenedCode {
  return {
    run: (inputs) => {
      const { shape, data } = inputOf(inputs, 'data')
      const made = new TextWriter('base64')
      let index = 0
      for (const element of bytesElements(data)) {
        made.begin()
        if (direction === 'decode') made.append(decode(element, index))
        else appendEncoded(made, element)
        index += 1
      }
      return [{ name: 'data', datatype: 'BYTES', shape, data: made.finish() }]
    },
  }
}

function appendEncoded(made: TextWriter, { buffer, byteOffset, byteLength }: Uint8Array): void {
  const bytes = Buffer.from(buffer, byteOffset, byteLength)
  for (let at = 0; at < byteLength; at += CHUNK_BYTES) {
    made.append(Buffer.from(bytes.toString('base64', at, Math.min(at + CHUNK_BYTES, byteLength))))
  }
}

/** Buffer's own takes anything, and leaves out the bytes that it does not understand. */
function decode(element: Uint8Array, index: number): Uint8Array {
  const out = new Uint8Array(Math.ceil((element.byteLength / 4) * 3))
  let length = 0
  let digits = 0
  let padding = 0
  let bits = 0
  for (const byte of element) {
    const value = VALUES[byte] ?? NO_DIGIT
    if (value === SPACE) continue
    if (byte === PADDING) {
      padding += 1
      continue
    }
    if (value === NO_DIGIT || padding > 0) throw noBase64(index)
    bits = ((bits << 6) | value) & 0xff_ff_ff
    digits += 1
    if (digits % 4 === 1) continue
    out[length] = (bits >> (6 - 2 * ((digits + 3) % 4))) & 0xff
    length += 1
  }
  if (padding > 2 || (digits + padding) % 4 !== 0) throw noBase64(index)
  return out.subarray(0, length)
}

function noBase64(index: number): Error {
  return misfit('data', `bytes in element ${index} that are no base64`, 'base64')
}
