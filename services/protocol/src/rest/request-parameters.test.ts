import t from 'tap'
import { decodeText, failureOf } from './testing/rest-fixtures.ts'

function wrongType(key: string): string {
  return `parameter '${key}' has invalid type. It should be either 'int', 'bool', or 'string'.`
}

await t.test('parameters keep their kinds and the known ones have their meaning', async (t) => {
  const request = decodeText(
    `{"id":"a","inputs":[],"parameters":{"sequence_id":18446744073709551615,"sequence_start":true,
      "sequence_end":false,"priority":2,"timeout":9007199254740993,"binary_data_output":true,
      "i":3,"d":3.0,"e":1e3,"s":"x","b":false,"max":9223372036854775807,"":1,"__proto__":"p",
      "over":9223372036854775808,"under":-9223372036854775809,"long":123456789012345678901234567890}}`,
  )
  t.same(request.context, {
    id: 'a',
    correlationId: 18446744073709551615n,
    sequenceStart: true,
    sequenceEnd: false,
    priority: 2n,
    timeoutUs: 9007199254740993n,
    parameters: new Map<string, unknown>([
      ['i', { kind: 'int64', value: 3n }],
      ['d', { kind: 'double', value: 3 }],
      ['e', { kind: 'double', value: 1000 }],
      ['s', { kind: 'string', value: 'x' }],
      ['b', { kind: 'bool', value: false }],
      ['max', { kind: 'int64', value: 9223372036854775807n }],
      ['', { kind: 'int64', value: 1n }],
      ['__proto__', { kind: 'string', value: 'p' }],
      ['over', { kind: 'double', value: 2 ** 63 }],
      ['under', { kind: 'double', value: -(2 ** 63) }],
      ['long', { kind: 'double', value: Number('123456789012345678901234567890') }],
    ]),
  })
  t.equal(request.isBinaryOutput, true)
  t.equal(
    decodeText('{"inputs":[],"parameters":{"sequence_id":"seq"}}').context.correlationId,
    'seq',
  )
})

await t.test('parameters of a wrong kind are refused', async (t) => {
  const rows = [
    ['"p"', 'INTERNAL', 'failed to get request params.: attempt to get members for non-object'],
    ['null', 'INTERNAL', 'failed to get request params.: attempt to get members for non-object'],
    [
      '{"sequence_id":-1}',
      'INTERNAL',
      "Unable to parse 'sequence_id': attempt to access JSON non-string as string",
    ],
    [
      '{"sequence_start":1}',
      'INTERNAL',
      "Unable to parse 'sequence_start': attempt to access JSON non-boolean as boolean",
    ],
    [
      '{"sequence_end":"no"}',
      'INTERNAL',
      "Unable to parse 'sequence_end': attempt to access JSON non-boolean as boolean",
    ],
    [
      '{"priority":1.0}',
      'INTERNAL',
      "Unable to parse 'priority': attempt to access JSON non-unsigned-integer as unsigned-integer",
    ],
    [
      '{"timeout":-1}',
      'INTERNAL',
      "Unable to parse 'timeout': attempt to access JSON non-unsigned-integer as unsigned-integer",
    ],
    [
      '{"binary_data_output":"x"}',
      'INTERNAL',
      "Unable to parse 'binary_data_output': attempt to access JSON non-boolean as boolean",
    ],
    [
      '{"triton_enable_empty_final_response":true}',
      'INVALID_ARGUMENT',
      "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
    ],
    [
      '{"p":1e400}',
      'INTERNAL',
      'failed to parse the request JSON buffer: Number too big to be stored in double.',
    ],
    ['{"o":{"a":1}}', 'INVALID_ARGUMENT', wrongType('o')],
    ['{"l":[1]}', 'INVALID_ARGUMENT', wrongType('l')],
    ['{"n":null}', 'INVALID_ARGUMENT', wrongType('n')],
    [
      `{"sequence_id":"${'s'.repeat(129)}"}`,
      'UNIMPLEMENTED',
      'string correlation ID is 129 characters long, want at most 128',
    ],
  ] as const
  for (const [parameters, code, message] of rows) {
    const error = failureOf(() => decodeText(`{"inputs":[],"parameters":${parameters}}`))
    t.match(error, { code, message }, parameters)
  }
})

/** A request whose parameters have texts of so many bytes. */
function withTexts(...bytes: readonly number[]): string {
  const members = bytes.map((count, i) => `"${i}":"${'é'.repeat(count / 2)}"`)
  return `{"inputs":[],"parameters":{${members.join(',')}}}`
}

await t.test('keys and texts of parameters take 512 KiB at most', async (t) => {
  const half = 2 ** 18
  t.equal(decodeText(withTexts(half, half - 2)).context.parameters.size, 2)
  for (const text of [withTexts(half, half), withTexts(2 * half)]) {
    t.match(
      failureOf(() => decodeText(text)),
      {
        reason: 'MESSAGE_TOO_LARGE',
        message: /parameters take more than 524288 bytes/,
      },
    )
  }
})

await t.test('parameters that nest without end are refused, not a crash', async (t) => {
  const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`
  const error = failureOf(() => decodeText(`{"inputs":[],"parameters":{"p":${deep}}}`))
  t.match(error, { reason: 'MALFORMED_MESSAGE', message: 'a JSON document is nested too deeply' })
})

/** Counts the work of a decode that takes longer than its text: numbers of a parse with a reviver, digits of a BigInt, parses. */
function workOf(text: string) {
  const { parse } = JSON
  const { BigInt: toBigInt } = globalThis
  const work = { revived: 0, digits: 0, parses: 0 }
  JSON.parse = (given: string, reviver?: Parameters<typeof parse>[1]): unknown => {
    work.parses += 1
    if (reviver !== undefined) work.revived += given.length
    return parse(given, reviver)
  }
  const counted = (given: string | number | bigint | boolean): bigint => {
    if (typeof given === 'string') work.digits = Math.max(work.digits, given.length)
    return toBigInt(given)
  }
  globalThis.BigInt = Object.assign(counted, toBigInt)
  try {
    return { error: failureOf(() => decodeText(text)), ...work }
  } finally {
    JSON.parse = parse
    globalThis.BigInt = toBigInt
  }
}

await t.test('what is wrong with parameters is told before it takes long', async (t) => {
  const ones = `[1${',1'.repeat(125_000)}]`
  const digits = '9'.repeat(1_000_000)
  const same = `"p":1${',"p":1'.repeat(50_000)}`
  const rows = [
    [`{"parameters":{"x":${ones}}}`, wrongType('x')],
    [`{"parameters":{"a":1,"x":{"y":${ones}},"b":2}}`, wrongType('x')],
    [`{"parameters":${ones}}`, 'attempt to get members for non-object'],
    [`{"parameters":{"priority":${ones}}}`, "Unable to parse 'priority'"],
    [`{"parameters":{"x":${digits}}}`, 'Number too big to be stored in double'],
    [`{"parameters":{"timeout":-${'9'.repeat(300)}}}`, "Unable to parse 'timeout'"],
    [`{"parameters":{"sequence_id":${'9'.repeat(300)}}}`, "Unable to parse 'sequence_id'"],
    [`{"parameters":{${same}}}`, 'message has more than 4096 entries of parameters'],
    [`{"inputs":[${tensor('x', 'INT64', digits)}]}`, 'Number too big to be stored in double'],
    [`{"inputs":[${tensor('x', 'INT64', `-${'9'.repeat(300)}`)}]}`, 'signed-integer'],
  ] as const
  for (const [text, message] of rows) {
    const { error, ...work } = workOf(text)
    t.match(error, { message })
    t.ok(work.digits <= 21 && work.revived === 0, JSON.stringify(work))
    t.ok(work.parses < 5000, `${work.parses} parses`)
  }
})

function tensor(name: string, datatype: string, element = '1'): string {
  return `{"name":"${name}","datatype":"${datatype}","shape":[1],"data":[${element}]}`
}

await t.test('names that are no names are refused by their length', async (t) => {
  const long = 'x'.repeat(4097)
  for (const text of [
    `{"id":"${long}","inputs":[]}`,
    `{"parameters":{"${long}":1},"inputs":[]}`,
    `{"parameters":{"${long}":[]},"inputs":[]}`,
    `{"inputs":[${tensor(long, 'INT8')}]}`,
    `{"inputs":[${tensor('x', long)}]}`,
    `{"inputs":[],"outputs":[{"name":"${long}"}]}`,
    `{"id":"${'\u00e9'.repeat(2049)}","inputs":[]}`,
  ]) {
    t.match(
      failureOf(() => decodeText(text)),
      { reason: 'MESSAGE_TOO_LARGE', message: /^a name, version, id or key has 409[78] bytes/ },
    )
  }
  const { context } = decodeText(
    `{"id":"${long.slice(1)}","inputs":[],"parameters":{"s":"${long}"}}`,
  )
  t.equal(context.id.length, 4096)
  t.strictSame(context.parameters.get('s'), { kind: 'string', value: long })
})
