import type { Normalize } from './bert-normalizer.ts'

/** Graphemes of fewer bytes are looked up whole. */
const WHOLE_BYTES = 6
const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/**
 * Makes the normaliser of a table that SentencePiece has compiled: a trie of bytes in a double array, whose leaves point into texts that
 * end with a zero.
 *
 * @see `Precompiled` of the `tokenizers` library, which takes the shortest entry that a grapheme or character begins with.
 */
export function charsmapNormalizer(charsmap: Uint8Array): Normalize {
  const bytes = Buffer.from(charsmap)
  const trieBytes = bytes.byteLength < 4 ? 0 : bytes.readUInt32LE(0)
  if (trieBytes % 4 !== 0 || 4 + trieBytes > bytes.byteLength)
    throw new Error('charsmap is cut short')
  const trie = Uint32Array.from({ length: trieBytes / 4 }, (_, i) => bytes.readUInt32LE(4 + 4 * i))
  const texts = bytes.subarray(4 + trieBytes)
  const find = (part: string): string | undefined => {
    const at = firstLeaf(trie, Buffer.from(part))
    return at === undefined ? undefined : texts.toString('utf8', at, texts.indexOf(0, at))
  }
  return (text) => {
    let out = ''
    for (const { segment } of graphemes.segment(text)) {
      const whole = Buffer.byteLength(segment) < WHOLE_BYTES ? find(segment) : undefined
      if (whole !== undefined) out += whole
      else for (const char of segment) out += find(char) ?? char
    }
    return out
  }
}

/** The value of the shortest entry that the bytes begin with. */
function firstLeaf(trie: Uint32Array, bytes: Uint8Array): number | undefined {
  let at = offsetOf(trie[0] ?? 0)
  for (const byte of bytes) {
    if (byte === 0) return undefined
    at ^= byte
    const unit = trie[at] ?? 0
    if ((unit & 0x8000_00ff) !== byte) return undefined
    at ^= offsetOf(unit)
    if ((unit & 0x100) !== 0) return (trie[at] ?? 0) & 0x7fff_ffff
  }
  return undefined
}

function offsetOf(unit: number): number {
  return (unit >>> 10) << ((unit & 0x200) >>> 6)
}
