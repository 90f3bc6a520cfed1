// Changes inputs. A format's own changes keep what stands around the changed place in order, so that more of them get past the
// first check.

/** Longest input; longer ones are cut. Every bound of a surface that a test can reach is configured below it. */
const MAX_BYTES = 16 * 1024
const NUMBERS = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff]
const TEXTS = [
  '0',
  '-1',
  '1e999',
  '9007199254740993',
  '18446744073709551616',
  'null',
  'true',
  '""',
  '[]',
  '{}',
  '\0',
  '\u2028',
  '\ud83d',
  '__proto__',
  '../',
  '%00',
]
const JSON_VALUES = [
  null,
  true,
  0,
  -0,
  -1,
  1.5,
  1e308,
  2 ** 53,
  '',
  'x',
  '__proto__',
  '../x',
  [],
  [[]],
  {},
  { a: {} },
]

/**
 * One to eight random changes of an input, more often few.
 *
 * @param {Buffer} input - left as it is.
 * @param {{ random: ReturnType<import('./random.mjs').seededRandom>, corpus: readonly Buffer[], formats: readonly (keyof typeof FORMATS)[] }} o
 */
export function mutate(input, { random, corpus, formats }) {
  let bytes = input
  const changes = random.pick([1, 1, 1, 2, 2, 3, 4, 8])
  for (let made = 0; made < changes; made++) {
    const format = random.below(4) === 0 ? 'bytes' : random.pick(formats)
    bytes = FORMATS[format](bytes, random, corpus) ?? BYTES(bytes, random, corpus)
  }
  return bytes.length > MAX_BYTES ? bytes.subarray(0, MAX_BYTES) : bytes
}

const splice = (bytes, at, count, ...parts) =>
  Buffer.concat([bytes.subarray(0, at), ...parts, bytes.subarray(at + count)])

/** A part of an input, at most 64 bytes of it mostly. */
function range(bytes, random) {
  const at = random.below(bytes.length + 1)
  const most = random.below(8) === 0 ? bytes.length : 64
  return { at, count: random.below(Math.min(most, bytes.length - at) + 1) }
}

function number(random) {
  const value = random.below(4) === 0 ? random.below(2 ** 32) : random.pick(NUMBERS)
  const bytes = Buffer.alloc(4)
  if (random.below(2) === 0) bytes.writeUInt32LE(value)
  else bytes.writeUInt32BE(value)
  return bytes.subarray(0, random.pick([1, 2, 4]))
}

const BYTE_CHANGES = [
  (bytes, random) => {
    if (bytes.length === 0) return Buffer.of(random.below(256))
    const changed = Buffer.from(bytes)
    changed[random.below(bytes.length)] ^= 1 << random.below(8)
    return changed
  },
  (bytes, random) => {
    const { at } = range(bytes, random)
    const value = number(random)
    return splice(bytes, at, value.length, value)
  },
  (bytes, random) => {
    const { at, count } = range(bytes, random)
    return splice(bytes, at, count)
  },
  (bytes, random) => {
    const { at, count } = range(bytes, random)
    const times = random.below(8) === 0 ? random.below(64) : 2
    const part = bytes.subarray(at, at + count)
    return splice(bytes, at, 0, ...Array.from({ length: times }, () => part))
  },
  (bytes, random, corpus) => {
    const other = random.pick(corpus)
    const from = range(other, random)
    const { at, count } = range(bytes, random)
    return splice(bytes, at, count, other.subarray(from.at, from.at + from.count))
  },
  (bytes, random) => {
    const { at } = range(bytes, random)
    return splice(bytes, at, 0, Buffer.from(random.pick(TEXTS)))
  },
]

function BYTES(bytes, random, corpus) {
  return random.pick(BYTE_CHANGES)(bytes, random, corpus)
}

/** Words, numbers, strings and signs, which change as wholes. */
const TOKENS = /"(?:[^"\\\n]|\\.)*"|[\w.+-]+|\s+|[^\w\s]/g

function text(bytes, random, corpus) {
  const tokens = bytes.toString('latin1').match(TOKENS) ?? []
  if (tokens.length === 0) return undefined
  const others = random.pick(corpus).toString('latin1').match(TOKENS) ?? ['x']
  const at = random.below(tokens.length)
  const other = random.below(3) === 0 ? random.pick(TEXTS) : random.pick(others)
  tokens.splice(at, random.below(2), ...(random.below(4) === 0 ? [] : [other]))
  return Buffer.from(tokens.join(''), 'latin1')
}

/** Changes one value of a JSON text, which may stand between other bytes. */
function json(bytes, random) {
  const start = Math.max(bytes.indexOf('{'), 0)
  const end = bytes.lastIndexOf('}') + 1
  let value
  try {
    value = JSON.parse(bytes.toString('utf8', start, end))
  } catch {
    return undefined
  }
  const holders = []
  const visit = (held) => {
    if (typeof held !== 'object' || held === null) return
    for (const key of Object.keys(held)) {
      holders.push([held, key])
      visit(held[key])
    }
  }
  visit(value)
  if (holders.length === 0) return undefined
  const [holder, key] = random.pick(holders)
  const [from, name] = random.pick(holders)
  const change = random.below(4)
  if (change === 0) delete holder[key]
  else if (change === 1) holder[key] = random.pick(JSON_VALUES)
  // A copy, because a value that holds itself has no text.
  else if (change === 2) holder[key] = structuredClone(from[name])
  else holder[random.pick(['x', '__proto__', name])] = structuredClone(from[name])
  return splice(bytes, start, end - start, Buffer.from(JSON.stringify(value)))
}

/** Changes one field of a protobuf message, on any level, and the lengths around it. */
function protobuf(bytes, random, corpus) {
  const fields = readFields(bytes)
  if (fields === undefined || fields.length === 0) return undefined
  const at = random.below(fields.length)
  const field = fields[at]
  const inner =
    field.wire === 2 && random.below(4) > 0 ? protobuf(field.value, random, corpus) : undefined
  if (inner !== undefined) fields[at] = { ...field, value: inner }
  else {
    const change = random.below(5)
    if (change === 0) fields.splice(at, 1)
    else if (change === 1) fields.push(field)
    else if (change === 2) fields[at] = { ...field, number: 1 + random.below(20) }
    else if (field.wire === 0)
      fields[at] = { ...field, value: varint(random.pick([...NUMBERS, 2 ** 40]), random) }
    else fields[at] = { ...field, value: BYTES(field.value, random, corpus) }
  }
  return Buffer.concat(fields.flatMap(writeField))
}

/** The fields of a message; undefined for bytes that are none. */
function readFields(bytes) {
  const fields = []
  for (let at = 0; at < bytes.length; ) {
    const tag = readVarint(bytes, at)
    if (tag === undefined) return undefined
    const wire = tag.value & 7
    const value = wire === 2 ? readVarint(bytes, tag.end) : undefined
    const [start, end] =
      wire === 0
        ? [tag.end, readVarint(bytes, tag.end)?.end]
        : wire === 2
          ? [value?.end, value && value.end + value.value]
          : [tag.end, tag.end + { 1: 8, 5: 4 }[wire]]
    if (end === undefined || !(end <= bytes.length)) return undefined
    fields.push({ number: tag.value >>> 3, wire, value: bytes.subarray(start, end) })
    at = end
  }
  return fields
}

function writeField({ number: tag, wire, value }) {
  const head = varint(tag * 8 + wire)
  return wire === 2 ? [head, varint(value.length), value] : [head, value]
}

function readVarint(bytes, at) {
  let value = 0
  for (let count = 0; count < 10 && at + count < bytes.length; count++) {
    const byte = bytes[at + count]
    if (count < 4) value |= (byte & 0x7f) << (7 * count)
    if (byte < 0x80) return { value, end: at + count + 1 }
  }
  return undefined
}

/** @param [random] - makes some longer than they need to be. */
function varint(value, random) {
  const bytes = []
  let rest = value
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) | 0x80)
    rest = Math.floor(rest / 0x80)
  }
  if (random?.below(8) === 0) bytes.push(rest | 0x80, 0x80, 0)
  else bytes.push(rest)
  return Buffer.from(bytes)
}

const BLOCK = 512
/** Offset and length of the fields of a header (POSIX, ustar). */
const TAR_FIELDS = [
  [0, 100],
  [100, 8],
  [124, 12],
  [156, 1],
  [157, 100],
  [257, 8],
  [345, 155],
]

/** Changes a header of a tar archive, and its checksum with it. */
function tar(bytes, random, corpus) {
  const blocks = Math.floor(bytes.length / BLOCK)
  if (blocks === 0) return undefined
  const changed = Buffer.from(bytes)
  const headers = [...Array(blocks).keys()].filter(
    (block) => bytes.toString('latin1', block * BLOCK + 257, block * BLOCK + 262) === 'ustar',
  )
  if (headers.length === 0) return undefined
  const header = changed.subarray(random.pick(headers) * BLOCK).subarray(0, BLOCK)
  const [at, size] = random.pick(TAR_FIELDS)
  const value =
    random.below(2) === 0
      ? random.pick([
          '../x',
          '/x',
          'a/b/',
          'f',
          'x\0',
          '\xff',
          '1',
          '2',
          '5',
          'x',
          'L',
          '77777777777',
          '00000000001',
        ])
      : BYTES(header.subarray(at, at + size), random, corpus)
  header.fill(0, at, at + size)
  header.set(Buffer.from(value, 'latin1').subarray(0, size), at)
  header.write('        ', 148, 'latin1')
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return changed
}

/** Changes a message of gRPC, and the length before it. */
function grpc(bytes, random, corpus) {
  if (bytes.length < 5 || bytes.length < 5 + bytes.readUInt32BE(1)) return undefined
  const end = 5 + bytes.readUInt32BE(1)
  const message = protobuf(bytes.subarray(5, end), random, corpus)
  if (message === undefined) return undefined
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  const more = random.below(4) === 0 ? random.pick(corpus) : Buffer.alloc(0)
  return Buffer.concat([head, message, bytes.subarray(end), more])
}

/** Changes which lines an HTTP/1.1 request has, or the end of one. */
function http1(bytes, random, corpus) {
  const lines = bytes.toString('latin1').split('\r\n')
  const others = random.pick(corpus).toString('latin1').split('\r\n')
  const at = random.below(lines.length)
  const kind = random.below(4)
  if (kind === 0) lines.splice(at, 1)
  else if (kind === 1) lines.splice(at, 0, random.pick(others))
  else if (kind === 2) lines.splice(at, 1, random.pick(others))
  else
    lines[at] += random.pick(['\n', '\r', ' ', '\t', '\0', ':', ';', ',', '\r\n', '\x80', ';a="'])
  return Buffer.from(lines.join('\r\n'), 'latin1')
}

/** The frames of HTTP/2, as far as they are whole, and what is left. */
function splitFrames(bytes) {
  const frames = []
  let at = 0
  while (at + 9 <= bytes.length) {
    const end = at + 9 + bytes.readUIntBE(at, 3)
    if (end > bytes.length) break
    frames.push(bytes.subarray(at, end))
    at = end
  }
  return { frames, rest: bytes.subarray(at) }
}

/** Changes one frame of HTTP/2, or which there are; lengths stay in order. */
function http2(bytes, random, corpus) {
  const { frames, rest } = splitFrames(bytes)
  const at = random.below(frames.length + 1)
  const frame = frames[at]
  const others = splitFrames(random.pick(corpus)).frames
  const added = random.below(3) === 0 ? frames[random.below(at + 1)] : random.pick(others)
  const kind = random.below(4)
  if (frame === undefined || kind === 0) frames.splice(at, 0, added ?? rest)
  else if (kind === 1) frames.splice(at, 1)
  else {
    const head = Buffer.from(frame.subarray(0, 9))
    const change = random.below(4)
    if (change === 0) head[3] = random.below(11)
    if (change === 1) head[4] ^= 1 << random.below(6)
    if (change === 2) head.writeUInt32BE(random.pick([0, 1, 2, 3, 5, 7, 0x7fffffff]), 5)
    const payload = frame.subarray(9)
    const changed = change === 3 ? BYTES(payload, random, corpus).subarray(0, 2 ** 14) : payload
    head.writeUIntBE(changed.length, 0, 3)
    frames[at] = Buffer.concat([head, changed])
  }
  return Buffer.concat([...frames, rest])
}

const FORMATS = { bytes: BYTES, text, json, protobuf, tar, grpc, http1, http2 }
