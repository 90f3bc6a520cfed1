/** Bits of the code of each byte, and of the end of a string. The code is canonical, so its lengths say all. @see RFC 7541, appendix B */
const LENGTHS = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
  28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5,
  6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6,
  7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23,
  23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22,
  22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22,
  23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27,
  27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25,
  24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
]
const END_OF_STRING = 256
/** A string may end within the code of the end, after fewer bits than this. */
const PADDING_BITS = 8

/** A place in the tree of codes: what 0 and 1 lead to, a place or a symbol. */
interface Place {
  readonly next: [Place | number | undefined, Place | number | undefined]
  readonly number: number
  /** A string may end here. */
  readonly mayEnd: boolean
}

const HALF_BYTE_BITS = 4
const EMITS = 1 << 16
const FAILS = 1 << 17

/**
 * Decodes half a byte at a time, which completes one symbol at most. Of each place and each half byte: the number of the place that
 * they lead to, in the lowest byte, then the symbol, then EMITS or FAILS.
 */
const { steps, ends } = toSteps(buildTree())

function buildTree(): readonly Place[] {
  const root: Place = { next: [undefined, undefined], number: 0, mayEnd: true }
  const places = [root]
  const symbols = LENGTHS.map((length, symbol) => ({ length, symbol })).toSorted(
    (a, b) => a.length - b.length || a.symbol - b.symbol,
  )
  let code = 0
  let before = 0
  for (const { length, symbol } of symbols) {
    code <<= length - before
    before = length
    let place = root
    for (let bit = length - 1; bit > 0; bit -= 1) place = follow(places, place, code, bit, length)
    place.next[code & 1 ? 1 : 0] = symbol
    code += 1
  }
  return places
}

function follow(places: Place[], from: Place, code: number, bit: number, length: number): Place {
  const side = (code >>> bit) & 1 ? 1 : 0
  const next = from.next[side]
  if (typeof next === 'object') return next
  const mayEnd = from.mayEnd && side === 1 && length - bit < PADDING_BITS
  const place: Place = { next: [undefined, undefined], number: places.length, mayEnd }
  places.push(place)
  from.next[side] = place
  return place
}

function toSteps(places: readonly Place[]): { steps: Uint32Array; ends: readonly boolean[] } {
  const table = new Uint32Array(places.length << HALF_BYTE_BITS)
  for (const place of places) {
    for (let half = 0; half < 1 << HALF_BYTE_BITS; half += 1) {
      table[(place.number << HALF_BYTE_BITS) | half] = toStep(places, place, half)
    }
  }
  return { steps: table, ends: places.map(({ mayEnd }) => mayEnd) }
}

function toStep(places: readonly Place[], from: Place, half: number): number {
  let at: Place | undefined = from
  let emitted = 0
  for (let bit = HALF_BYTE_BITS - 1; bit >= 0; bit -= 1) {
    const next: Place | number | undefined = at?.next[(half >>> bit) & 1 ? 1 : 0]
    if (next === undefined || next === END_OF_STRING) return FAILS
    if (typeof next === 'number') emitted = EMITS | (next << 8)
    at = typeof next === 'number' ? places[0] : next
  }
  return emitted | (at?.number ?? 0)
}

/** No code has fewer bits, so a byte becomes 8 / 5 symbols at most. */
const LEAST_BITS = 5
let scratch = Buffer.allocUnsafe(1024)

/** Decodes a string in HPACK's Huffman code. @returns the string; undefined if the bytes are not valid in this code. */
export function decodeHuffman(bytes: Uint8Array, from: number, to: number): string | undefined {
  const most = Math.ceil(((to - from) * 8) / LEAST_BITS)
  const out = most <= scratch.byteLength ? scratch : (scratch = Buffer.allocUnsafeSlow(2 * most))
  let place = 0
  let length = 0
  for (let at = from; at < to; at += 1) {
    const byte = bytes[at] ?? 0
    for (const half of [byte >>> HALF_BYTE_BITS, byte & 15]) {
      const step = steps[(place << HALF_BYTE_BITS) | half] ?? FAILS
      if (step & FAILS) return undefined
      if (step & EMITS) out[length++] = (step >>> 8) & 0xff
      place = step & 0xff
    }
  }
  return ends[place] === true ? out.toString('latin1', 0, length) : undefined
}
