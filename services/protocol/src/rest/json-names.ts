const QUOTE = 0x22
const BACKSLASH = 0x5c
const STARTS = new Set(Buffer.from('INn'))
/** With what follows it. */
const LONGEST_NAME = 9
/** The first one must not be there, else it would be one of those that stand for NaN. */
const NAME = /^(?:null|NaN|Infinity|Inf)(?!\w)/
const NOT_A_NUMBER = 'null'
const TOO_LARGE = '1e999'
/** Largest factor by which a replacement makes a name longer, that of `Inf`. */
const GROWTH = 5 / 3

/**
 * Replaces NaN by null, and Inf and Infinity by 1e999, in a JSON text. Triton reads these names, but JSON does not have them.
 *
 * @returns new memory; undefined if there is no such name, or if the text has a null of its own, which could not be told from
 * NaN.
 */
export function replaceNames(bytes: Uint8Array): Buffer | undefined {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (!text.includes('NaN') && !text.includes('Inf')) return undefined
  const out = Buffer.allocUnsafe(Math.ceil(text.byteLength * GROWTH))
  let size = 0
  /** `out` has all that lies before. */
  let copied = 0
  for (let at = 0; at < text.byteLength; at += 1) {
    const byte = text[at] ?? 0
    if (byte === QUOTE) at = endOfString(text, at)
    else if (STARTS.has(byte)) {
      const name = nameAt(text, at)
      if (name === NOT_A_NUMBER) return undefined
      if (name === undefined) continue
      size += text.copy(out, size, copied, at)
      size += out.write(name === 'NaN' ? NOT_A_NUMBER : TOO_LARGE, size)
      copied = at + name.length
      at = copied - 1
    }
  }
  if (copied === 0) return undefined
  size += text.copy(out, size, copied)
  return out.subarray(0, size)
}

function nameAt(text: Buffer, at: number): string | undefined {
  return NAME.exec(text.toString('latin1', at, at + LONGEST_NAME))?.[0]
}

/** @returns where its last quote is. */
function endOfString(text: Buffer, start: number): number {
  let at = start + 1
  while (at < text.byteLength && text[at] !== QUOTE) at += text[at] === BACKSLASH ? 2 : 1
  return at
}

/**
 * Puts NaN in place of every null in the value of a text that `replaceNames` has changed. Arrays and objects are changed in
 * place.
 */
export function nullsToNaN(value: unknown): unknown {
  if (value === null) return Number.NaN
  if (Array.isArray(value)) for (let i = 0; i < value.length; i++) value[i] = nullsToNaN(value[i])
  else if (typeof value === 'object') {
    for (const [key, item] of Object.entries(value)) Reflect.set(value, key, nullsToNaN(item))
  }
  return value
}
