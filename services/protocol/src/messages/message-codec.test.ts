import { deepStrictEqual, ok } from 'node:assert/strict'
import { ServeError } from '@tutti/errors'
import * as fc from 'fast-check'
import t from 'tap'
import type { Envelope } from '../envelope.ts'
import { HEADER_LIMIT_BYTES, INLINE_LIMIT_BYTES, INLINE_TOTAL_LIMIT_BYTES } from './limits.ts'
import type { Message, TensorPart } from './message.ts'
import { decodeMessage, encodeMessage } from './message-codec.ts'
import { damaged, message } from './testing/message-arbitraries.ts'

const ENVELOPE: Envelope = {
  requestKey: 'r-1',
  model: 'pre_gfpgan',
  version: 1,
  revision: 'abc',
  step: 'pre',
  attempt: 1,
  context: {
    id: 'id',
    correlationId: 7n,
    sequenceStart: true,
    sequenceEnd: false,
    priority: 0n,
    timeoutUs: 0n,
    parameters: new Map([['key', { kind: 'bool', value: true }]]),
  },
  requestedOutputs: ['y'],
  inputs: [{ name: 'x', datatype: 'UINT8', shape: [3] }],
}
const PARTS: readonly TensorPart[] = [{ kind: 'inline', bytes: Uint8Array.of(1, 2, 3) }]
const OFFER = {
  from: 'router-1',
  call: 5,
  type: 'offer',
  envelope: ENVELOPE,
  parts: PARTS,
  responseCredits: 4,
} as const satisfies Message
const ERROR = {
  code: 'INTERNAL',
  reason: 'INTERNAL',
  message: 'text',
  details: { step: 's' },
} as const

/** Inline tensors as plain arrays: the codec gives and takes any view. */
function comparable(message: Message): Message {
  if (message.type !== 'offer' && message.type !== 'response') return message
  const parts = message.parts.map((part) =>
    part.kind === 'inline' ? { ...part, bytes: new Uint8Array(part.bytes) } : part,
  )
  return { ...message, parts }
}

/** A message at an offset in memory that is not aligned, as a broker's client hands it over. */
function received(bytes: Uint8Array): Uint8Array {
  const slab = new Uint8Array(bytes.byteLength + 12)
  slab.set(bytes, 5)
  return slab.subarray(5, 5 + bytes.byteLength)
}

/** The field and reason of the error with which bytes are refused. */
function refusal(bytes: Uint8Array): string {
  try {
    decodeMessage(bytes)
  } catch (error) {
    ok(error instanceof ServeError, String(error))
    return `${error.reason} ${error.details.field}`
  }
  return 'none'
}

/** A copy with bytes of its own at `at`. */
function changed(bytes: Uint8Array, at: number, ...to: readonly number[]): Uint8Array {
  const copy = new Uint8Array(bytes)
  copy.set(to, at)
  return copy
}

/** A copy whose header has `from` replaced by `to`, of the same length. */
function replaced(bytes: Uint8Array, from: string, to: string): Uint8Array {
  const at = Buffer.from(bytes).indexOf(from)
  ok(at > 0 && from.length === to.length)
  return changed(bytes, at, ...Buffer.from(to, 'latin1'))
}

await t.test('any message comes out as it went in', async (t) => {
  const property = fc.property(message, (message) => {
    const got = decodeMessage(received(encodeMessage(message)))
    deepStrictEqual(comparable(got), comparable(message))
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 500 }))
})

await t.test('inline tensors are aligned views, and nothing old lies between them', async (t) => {
  const headers = [1, 0, 9, 8].map((size, i) => ({
    name: `t${i}`,
    datatype: 'UINT8' as const,
    shape: [size],
  }))
  const parts = headers.map(({ shape }) => ({
    kind: 'inline' as const,
    bytes: new Uint8Array(shape[0] ?? 0).fill(0xff),
  }))
  const bytes = encodeMessage({ ...OFFER, envelope: { ...ENVELOPE, inputs: headers }, parts })
  const message = decodeMessage(bytes)
  const views = message.type === 'offer' ? message.parts : []
  for (const part of views) {
    if (part.kind !== 'inline' || part.bytes.byteLength === 0) continue
    t.equal(part.bytes.buffer, bytes.buffer)
    t.equal((part.bytes.byteOffset - bytes.byteOffset) % 8, 0)
  }
  const inline = bytes.subarray(bytes.byteLength - (8 + 16 + 8))
  t.same(
    [...inline],
    [
      0xff,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      ...Array(9).fill(0xff),
      ...Array(7).fill(0),
      ...Array(8).fill(0xff),
    ],
  )
})

await t.test('random bytes are refused with a typed error', async (t) => {
  const property = fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
    ok(refusal(bytes) !== 'none')
    // Behind a good prefix the header's fields are reached.
    const size = bytes.byteLength
    for (let type = 1; type <= 9; type++) {
      const head = Buffer.from([0x54, 0x50, 0x4d, 1, type, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
      head.writeUInt32LE(size, 8)
      refusal(Buffer.concat([head, bytes]))
    }
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 300 }))
})

await t.test('damaged messages are read or refused, and what is read can be sent', async (t) => {
  const property = fc.property(damaged(message.map(encodeMessage)), (bytes) => {
    if (refusal(bytes) !== 'none') return
    const message = decodeMessage(bytes)
    deepStrictEqual(comparable(decodeMessage(encodeMessage(message))), comparable(message))
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 500 }))
})

await t.test('every cut of a message is refused', async (t) => {
  const bytes = encodeMessage({
    ...OFFER,
    type: 'response',
    index: 0,
    final: true,
    outputs: ENVELOPE.inputs,
    parameters: ENVELOPE.context.parameters,
  })
  for (let size = 0; size < bytes.byteLength; size++) {
    const reason = refusal(bytes.subarray(0, size))
    if (!reason.startsWith('MALFORMED_MESSAGE ')) t.fail(`${size} bytes: ${reason}`)
  }
  t.equal(refusal(bytes), 'none')
})

await t.test('another version and an unknown type are told apart from damage', async (t) => {
  const bytes = encodeMessage(OFFER)
  t.equal(refusal(changed(bytes, 3, 2)), 'UNSUPPORTED version')
  t.equal(refusal(changed(bytes, 4, 0)), 'UNSUPPORTED type')
  t.equal(refusal(changed(bytes, 4, 10)), 'UNSUPPORTED type')
  t.throws(() => decodeMessage(changed(bytes, 3, 2)), {
    code: 'UNIMPLEMENTED',
    message: 'member message: version: 2, want 1',
  })
})

await t.test('each field that is wrong is named', async (t) => {
  const offer = encodeMessage(OFFER)
  const refused = encodeMessage({ from: 'r', call: 1, type: 'refused', error: ERROR })
  const credit = {
    from: 'r',
    call: 1,
    type: 'credit',
    credits: [{ transfer: 1, upTo: 2 }],
  } as const
  const inputs = offer.indexOf(0x78) // 'x'
  const cases: readonly (readonly [string, Uint8Array])[] = [
    ['prefix', offer.subarray(0, 15)],
    ['magic', changed(offer, 0, 0x55)],
    ['flags', changed(refused, 5, 1)],
    ['prefix', changed(offer, 7, 1)],
    ['header', changed(offer, 8, 0xff, 0xff, 0xff, 0xff)],
    ['inline', changed(offer, 12, 0xff, 0xff, 0xff, 0xff)],
    ['inline', Buffer.concat([offer, Uint8Array.of(0)])],
    ['from', replaced(offer, '\u0008router-1', '\u0000router-1')],
    ['from', replaced(offer, 'router-1', '\xffouter-1')],
    ['envelope.model', replaced(offer, '\u000apre_', '\u007fpre_')],
    ['context.correlationId', replaced(offer, '\u0002id\u0000', '\u0002id\u0002')],
    ['parameters[0].kind', replaced(offer, '\u0003key\u0000', '\u0003key\u0005')],
    ['parameters[0].value', replaced(offer, '\u0003key\u0000\u0001', '\u0003key\u0000\u0002')],
    ['envelope.inputs[0].datatype', changed(offer, inputs + 1, 0)],
    ['envelope.inputs[0].datatype', changed(offer, inputs + 1, 15)],
    ['envelope.inputs[0].size', changed(offer, inputs + 1, 3)],
    ['envelope.inputs[0].size', changed(offer, inputs + 3, 4)],
    ['envelope.inputs[0].part', changed(offer, inputs + 4, 3)],
    ['envelope.inputs[0].size', changed(offer, inputs + 5, 2)],
    ['envelope.inputs[0].size', changed(offer, inputs + 5, 4)],
    ['error.code', replaced(refused, '\u000c\u0008INT', '\u0010\u0008INT')],
    ['credits', changed(encodeMessage(credit), 19, 9)],
    ['header', changed(encodeMessage(credit), 19, 0)],
  ]
  for (const [field, bytes] of cases) t.equal(refusal(bytes), `MALFORMED_MESSAGE ${field}`)
})

/** A credit message of member `r` whose header goes on with `bytes`. */
function header(...bytes: readonly number[]): Uint8Array {
  const all = Buffer.concat([
    Buffer.from('TPM\u0001\u0005\0\0\0\0\0\0\0\0\0\0\0'),
    Uint8Array.of(1, 0x72),
    Uint8Array.from(bytes),
  ])
  all.writeUInt32LE(all.byteLength - 16, 8)
  return all
}

await t.test('integers are refused above 2^53 - 1, and lists above their bounds', async (t) => {
  t.equal(refusal(header(...Array(7).fill(0xff), 0x0f, 0)), 'none', '2^53 - 1')
  t.equal(refusal(header(...Array(7).fill(0xff), 0x10, 0)), 'MALFORMED_MESSAGE call')
  t.equal(refusal(header(...Array(9).fill(0xff), 0)), 'MALFORMED_MESSAGE call')
  const hostile = header(1, 0xff, 0xff, 0xff, 0x7f)
  t.equal(refusal(hostile), 'MALFORMED_MESSAGE credits')
})

await t.test('a parameter twice, and an error that is not the end, are refused', async (t) => {
  const parameters = new Map([
    ['aa', { kind: 'bool', value: true }],
    ['ab', { kind: 'bool', value: true }],
  ] as const)
  const message = {
    from: 'r',
    call: 1,
    type: 'response',
    index: 0,
    final: true,
    outputs: [],
    parts: [],
    parameters,
  } as const
  const twice = replaced(encodeMessage(message), 'ab', 'aa')
  t.equal(refusal(twice), 'MALFORMED_MESSAGE parameters[1].key')
  const failed = encodeMessage({ ...message, error: ERROR })
  t.equal(refusal(changed(failed, 5, 2)), 'MALFORMED_MESSAGE error', 'not final')
})

await t.test('what cannot be read is not sent', async (t) => {
  const tooMany = Array.from({ length: 4097 }, () => 'y')
  const wide = (count: number, size: number): Message => ({
    ...OFFER,
    envelope: {
      ...ENVELOPE,
      inputs: Array.from({ length: count }, () => ({
        name: 'x',
        datatype: 'UINT8',
        shape: [size],
      })),
    },
    parts: Array.from({ length: count }, () => ({ kind: 'inline', bytes: new Uint8Array(size) })),
  })
  const large: readonly Message[] = [
    wide(1, INLINE_LIMIT_BYTES + 1),
    wide(5, INLINE_LIMIT_BYTES),
    { ...OFFER, envelope: { ...ENVELOPE, requestedOutputs: tooMany } },
    { ...OFFER, envelope: { ...ENVELOPE, model: 'm'.repeat(HEADER_LIMIT_BYTES) } },
    {
      ...OFFER,
      envelope: {
        ...ENVELOPE,
        requestedOutputs: Array.from({ length: 4 }, () => 'y'.repeat(HEADER_LIMIT_BYTES / 4)),
      },
    },
  ]
  for (const message of large) {
    t.throws(() => encodeMessage(message), {
      reason: 'MESSAGE_TOO_LARGE',
      message: 'member message: ',
    })
  }
  t.doesNotThrow(() => encodeMessage(wide(4, INLINE_LIMIT_BYTES)))
  t.equal(4 * INLINE_LIMIT_BYTES, INLINE_TOTAL_LIMIT_BYTES)

  const wrongSize = { ...OFFER, parts: [{ kind: 'transfer', transfer: 1, size: 4 }] } as const
  t.throws(() => encodeMessage(wrongSize), {
    reason: 'MALFORMED_MESSAGE',
    message: 'member message: tensor "x": 4 bytes, want 3',
  })
  const bugs: readonly Message[] = [
    { ...OFFER, from: '' },
    { ...OFFER, from: 'r'.repeat(256) },
    { ...OFFER, call: -1 },
    { ...OFFER, call: 0.5 },
    { ...OFFER, parts: [] },
    { ...OFFER, envelope: { ...ENVELOPE, remainingMs: Number.NaN } },
    { ...OFFER, envelope: { ...ENVELOPE, context: { ...ENVELOPE.context, priority: -1n } } },
    { ...OFFER, envelope: { ...ENVELOPE, context: { ...ENVELOPE.context, timeoutUs: 2n ** 64n } } },
    {
      from: 'r',
      call: 1,
      type: 'response',
      index: 0,
      final: false,
      outputs: [],
      parts: [],
      parameters: new Map(),
      error: ERROR,
    },
  ]
  for (const message of bugs) {
    t.throws(() => encodeMessage(message), { reason: 'INTERNAL', message: 'bug: ' })
  }
  t.equal(refusal(encodeMessage(OFFER)), 'none', 'a failure leaves nothing behind')
})

await t.test('tensors need the bytes that datatype and shape say', async (t) => {
  const cases = [
    { datatype: 'FP32', shape: [2, 3], size: 24, isGood: true },
    { datatype: 'FP32', shape: [], size: 4, isGood: true },
    { datatype: 'FP32', shape: [2 ** 40, 2 ** 40], size: 0, isGood: false },
    { datatype: 'INT64', shape: [0, 2 ** 50], size: 0, isGood: true },
    { datatype: 'BYTES', shape: [2], size: 8, isGood: true },
    { datatype: 'BYTES', shape: [2], size: 7, isGood: false },
    { datatype: 'BYTES', shape: [0], size: 1, isGood: false },
    { datatype: 'BYTES', shape: [2 ** 50], size: 100, isGood: false },
  ] as const
  for (const { datatype, shape, size, isGood } of cases) {
    const inputs = [{ name: 'x', datatype, shape }]
    const parts = [{ kind: 'transfer', transfer: 1, size }] as const
    const act = (): unknown => encodeMessage({ ...OFFER, envelope: { ...ENVELOPE, inputs }, parts })
    const name = `${datatype} ${shape.join()} in ${size}`
    if (isGood) t.doesNotThrow(act, name)
    else t.throws(act, { reason: 'MALFORMED_MESSAGE', message: 'tensor "x"' }, name)
  }
})
