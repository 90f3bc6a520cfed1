import t from 'tap'
import { decodeInferRequest } from './infer/server-codec.ts'
import { checkFieldCount, decodeRepositoryRequest } from './repository-request.ts'

const TOO_LARGE = {
  reason: 'MESSAGE_TOO_LARGE',
  message: /too many fields or|more than 4096 entries/,
}

await t.test('a message of very many fields is refused, wherever they are', async (t) => {
  const entries = Buffer.concat(
    Array.from({ length: 1024 }, (_, i) => inside(18, text(10, `${i}`))),
  )
  const cases: readonly (readonly [string, Uint8Array])[] = [
    ['unknown', fields('7800')],
    ['groups', fields('7b7c')],
    ['a name again and again', fields('0a00')],
    ['a field of an input', inside(42, fields('0a00'))],
    ['a value of a parameter', inside(34, inside(18, fields('0801')))],
    ['parameters of outputs', Buffer.concat(Array.from({ length: 64 }, () => inside(50, entries)))],
    [
      'extents',
      Buffer.concat(Array.from({ length: 129 }, () => inside(42, inside(26, Buffer.alloc(1024))))),
    ],
  ]
  for (const [what, bytes] of cases) {
    t.throws(() => decodeInferRequest(bytes), TOO_LARGE, what)
  }
})

/** A request whose input has its contents in two parts. */
function parts(bytes: number): Buffer {
  return inside(42, Buffer.concat([1, 2].map(() => inside(42, Buffer.alloc(bytes)))))
}

await t.test('contents in several fields are joined, as far as that takes no time', async (t) => {
  t.equal(decodeInferRequest(parts(4000)).inputs[0]?.contents?.byteLength, 8000)
  t.throws(() => decodeInferRequest(parts(8193)), {
    reason: 'MESSAGE_TOO_LARGE',
    message:
      "contents of input '' come in 2 fields of 16386 bytes, want at most 16384 unless in one field",
  })
})

await t.test('the fields of a long message take as long as those of short ones', async (t) => {
  const outputs = Array.from({ length: 4096 }, (_, i) => outputWithParameters(i))
  const cpuMs = (count: number, times: number): number => {
    const message = Buffer.concat(outputs.slice(0, count))
    const before = process.threadCpuUsage()
    for (let i = 0; i < times; i += 1) decodeInferRequest(message)
    const { user, system } = process.threadCpuUsage(before)
    return (user + system) / 1000
  }
  t.equal(decodeInferRequest(Buffer.concat(outputs)).outputs.length, 4096)
  const [short, long] = [cpuMs(256, 160), cpuMs(4096, 10)]
  // A decoder that compares each field with all others takes 16 times as long.
  t.ok(long < 6 * short, `${short} and ${long} ms of processor time`)
})

await t.test('a load or an unload of very many fields is refused', async (t) => {
  for (const [what, field] of [
    ['unknown', '7800'],
    ['a name again and again', '1200'],
    ['entries', '1a00'],
  ] as const) {
    const bytes = fields(field)
    t.throws(() => decodeRepositoryRequest(bytes), TOO_LARGE, what)
    t.throws(() => checkFieldCount(bytes), TOO_LARGE, what)
  }
  const entries = Array.from({ length: 4097 }, (_, i) => inside(26, text(10, `${i}`)))
  t.throws(() => decodeRepositoryRequest(Buffer.concat(entries)), TOO_LARGE)
  t.equal(decodeRepositoryRequest(Buffer.concat(entries.slice(1))).parameters.size, 4096)
})

await t.test('a name that is no name is refused by its length, before it is text', async (t) => {
  const long = 'x'.repeat(4097)
  const cases: readonly (readonly [string, Uint8Array])[] = [
    ['model', text(10, long)],
    ['version', text(18, long)],
    ['id', text(26, long)],
    ['parameter', inside(34, text(10, long))],
    ['input', inside(42, text(10, long))],
    ['datatype', inside(42, text(18, long))],
    ["an input's parameter", inside(42, inside(34, text(10, long)))],
    ['output', inside(50, text(10, long))],
    ["an output's parameter", inside(50, inside(18, text(10, long)))],
  ]
  const TOO_LONG = { reason: 'MESSAGE_TOO_LARGE', message: /^a name, .* has 4097 bytes/ }
  for (const [what, bytes] of cases) t.throws(() => decodeInferRequest(bytes), TOO_LONG, what)
  for (const [what, bytes] of [
    ['repository', text(10, long)],
    ['model', text(18, long)],
    ['parameter', inside(26, text(10, long))],
  ] as const) {
    t.throws(() => decodeRepositoryRequest(bytes), TOO_LONG, what)
  }
  t.equal(decodeInferRequest(text(26, long.slice(1))).id.length, 4096)
  const value = inside(34, text(10, 'k'), inside(18, text(26, long)))
  t.strictSame(decodeInferRequest(value).parameters.get('k'), { kind: 'string', value: long })
})

/** One field more than a message may have. */
function fields(field: string): Buffer {
  return Buffer.from(field.repeat(2 ** 17 + 1), 'hex')
}

function outputWithParameters(i: number): Buffer {
  const parameter = inside(18, text(10, `parameter ${i}`), Buffer.of(18, 2, 0x28, 1))
  return inside(50, ...Array.from({ length: 7 }, () => parameter))
}

function inside(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const bytes = Buffer.concat(parts)
  return Buffer.concat([Buffer.of(tag), varint(bytes.byteLength), bytes])
}

function text(tag: number, value: string): Buffer {
  return inside(tag, Buffer.from(value))
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest > 127; rest >>>= 7) bytes.push((rest & 127) | 128)
  return Buffer.from([...bytes, rest])
}

/** A parameter with a text of so many bytes, in characters of `unit`. */
function entry(key: string, bytes: number, unit = 'x'): Buffer {
  const value = unit.repeat(bytes / Buffer.byteLength(unit))
  return Buffer.concat([text(10, key), inside(18, text(26, value))])
}

function request(bytes: number, unit?: string): Buffer {
  return inside(34, entry('k', bytes, unit))
}

function input(bytes: number): Buffer {
  return inside(42, inside(34, entry('k', bytes)))
}

function output(bytes: number): Buffer {
  return inside(50, inside(18, entry('k', bytes)))
}

/** The parameter of a load with a configuration of so many bytes. */
function loadWith(bytes: number): Buffer {
  return inside(26, text(10, 'config'), inside(18, text(26, 'x'.repeat(bytes))))
}

await t.test('the parameters of a request take 512 KiB at most, wherever they are', (t) => {
  const half = 2 ** 18
  const keys = Array.from({ length: 256 }, (_, i) => inside(34, entry(`${i}`.padEnd(2048), 0)))
  for (const parts of [
    [request(2 * half - 1)],
    [request(half), input(half - 2)],
    [input(half), output(half - 2)],
    keys,
  ]) {
    decodeInferRequest(Buffer.concat(parts))
    t.pass('fits')
  }
  const TOO_MUCH = {
    reason: 'MESSAGE_TOO_LARGE',
    message: /parameters take more than 524288 bytes/,
  }
  for (const [what, parts] of Object.entries({
    one: [request(2 * half)],
    'one beyond Latin-1': [request(2 * half, '\u0100')],
    two: [request(half), request(half)],
    'of an input': [request(half), input(half)],
    'of an output': [input(half), output(half)],
    keys: [...keys, inside(34, entry('k', 0))],
    // The last one counts, but each has been text.
    'values of one': [
      inside(
        34,
        inside(18, Buffer.concat([text(26, 'x'.repeat(half)), text(26, 'x'.repeat(half + 1))])),
      ),
    ],
  })) {
    t.throws(() => decodeInferRequest(Buffer.concat(parts)), TOO_MUCH, what)
  }
  t.equal(decodeRepositoryRequest(loadWith(half)).parameters.size, 1)
  t.throws(() => decodeRepositoryRequest(loadWith(2 * half)), TOO_MUCH, 'of a load')
  t.end()
})

await t.test('a parameter that is too long is refused before it is text', (t) => {
  const huge = Buffer.alloc(2 ** 28, 'x')
  const message = inside(34, inside(18, text(26, huge.toString('latin1'))))
  const before = process.memoryUsage().heapUsed + process.memoryUsage().external
  t.throws(() => decodeInferRequest(message), { reason: 'MESSAGE_TOO_LARGE', message: /take more/ })
  const taken = process.memoryUsage().heapUsed + process.memoryUsage().external - before
  t.ok(taken < 2 ** 24, `${taken} bytes`)
  t.end()
})

await t.test('what is made of a message counts with it', (t) => {
  const texts = Buffer.concat([text(10, 'n'.repeat(4096)), inside(50, text(10, 'o'.repeat(1000)))])
  const { madeBytes } = decodeInferRequest(texts)
  t.ok(madeBytes >= 2 * 5096, `${madeBytes} bytes`)
  const inputs = decodeInferRequest(Buffer.from('2a00'.repeat(4096), 'hex'))
  t.ok(inputs.madeBytes >= 4096 * 256, `${inputs.madeBytes} bytes`)
  t.end()
})
