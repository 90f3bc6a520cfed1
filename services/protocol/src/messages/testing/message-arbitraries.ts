import { REASONS, STATUS_CODES, type StatusCode } from '@tutti/errors'
import {
  DATATYPES,
  type Datatype,
  elementCount,
  isDatatype,
  type Parameter,
  STEP_COUNTS,
} from '@tutti/tensor'
import * as fc from 'fast-check'
import type { Message, OutputHeader, TensorPart } from '../message.ts'

const plain = { noNullPrototype: true }
const text = fc.string({ unit: 'binary', maxLength: 40 })
const natural = fc.maxSafeNat()
const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
const codes = Object.keys(STATUS_CODES).filter((code): code is StatusCode => code in STATUS_CODES)

/** An id that a member may have. */
export const memberId = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 60 })
  .filter((id) => Buffer.byteLength(id) <= 255)

const parameter: fc.Arbitrary<Parameter> = fc.oneof(
  fc.record({ kind: fc.constant('bool' as const), value: fc.boolean() }, plain),
  fc.record({ kind: fc.constant('int64' as const), value: int64 }, plain),
  fc.record({ kind: fc.constant('string' as const), value: text }, plain),
  fc.record({ kind: fc.constant('double' as const), value: fc.double() }, plain),
  fc.record({ kind: fc.constant('uint64' as const), value: uint64 }, plain),
)

const parameters = fc
  .array(fc.tuple(text, parameter), { maxLength: 5 })
  .map((entries) => new Map(entries))

const context = fc.record(
  {
    id: text,
    correlationId: fc.oneof(uint64, text),
    sequenceStart: fc.boolean(),
    sequenceEnd: fc.boolean(),
    priority: uint64,
    timeoutUs: uint64,
    parameters,
  },
  plain,
)

const error = fc.record(
  {
    code: fc.constantFrom(...codes),
    reason: fc.oneof(fc.constantFrom(...Object.keys(REASONS)), text),
    message: text,
    details: fc.dictionary(text, text, { maxKeys: 4, ...plain }),
  },
  plain,
)

const nanoseconds = fc.oneof(natural, fc.double({ min: 0, max: 1e12, noNaN: true }))
const times = fc.record(
  {
    queueNs: nanoseconds,
    computeInputNs: nanoseconds,
    computeInferNs: nanoseconds,
    computeOutputNs: nanoseconds,
  },
  plain,
)

const datatypes: readonly Datatype[] = Object.keys(DATATYPES).filter(isDatatype)

function sizeOf(header: OutputHeader, extra: number): number {
  const count = elementCount(header.shape)
  const { itemSize } = DATATYPES[header.datatype]
  if (itemSize !== null) return count * itemSize
  return count === 0 ? 0 : count * 4 + extra
}

interface Tensor {
  readonly header: OutputHeader
  readonly part: TensorPart
}

const tensor: fc.Arbitrary<Tensor> = fc
  .record({
    name: text,
    datatype: fc.constantFrom(...datatypes),
    shape: fc.array(fc.nat(6), { maxLength: 4 }),
    extra: fc.nat(20),
    fill: fc.nat(255),
    transfer: fc.option(natural, { nil: undefined }),
    unasked: fc.constantFrom({}, { isUnasked: true as const }),
  })
  .map(({ name, datatype, shape, extra, fill, transfer, unasked }) => {
    const header = { name, datatype, shape }
    const size = sizeOf(header, extra)
    const part: TensorPart =
      transfer === undefined
        ? { kind: 'inline', bytes: new Uint8Array(size).fill(fill) }
        : { kind: 'transfer', transfer, size, ...unasked }
    return { header, part }
  })

const tensors = fc.array(tensor, { maxLength: 4 })
const credits = fc.array(fc.record({ transfer: natural, upTo: natural }, plain), { maxLength: 4 })

const envelope = fc
  .record({
    fixed: fc.record(
      {
        requestKey: text,
        model: text,
        version: natural,
        revision: text,
        step: text,
        attempt: natural,
        context,
        requestedOutputs: fc.array(text, { maxLength: 3 }),
      },
      plain,
    ),
    optional: fc.record(
      {
        remainingMs: fc.double({
          min: Number.MIN_SAFE_INTEGER,
          max: Number.MAX_SAFE_INTEGER,
          noNaN: true,
        }),
        traceparent: text,
        tracestate: text,
        callers: fc.array(text, { maxLength: 3 }),
        program: text,
        isDecoupled: fc.constant(true as const),
      },
      { requiredKeys: [], ...plain },
    ),
  })
  .map(({ fixed, optional }) => ({ ...fixed, ...optional }))

const offer = fc
  .record({
    envelope,
    tensors,
    responseCredits: natural,
    more: fc.record(
      { responseBytes: natural, done: fc.array(natural, { maxLength: 3 }) },
      { requiredKeys: [], ...plain },
    ),
  })
  .map(({ envelope, tensors, responseCredits, more }) => ({
    type: 'offer' as const,
    envelope: { ...envelope, inputs: tensors.map(({ header }) => header) },
    parts: tensors.map(({ part }) => part),
    responseCredits,
    ...more,
  }))

const stepReport = fc.record(
  {
    step: text,
    model: text,
    calls: fc.array(
      fc.record(
        { queueNs: natural, computeNs: natural, elapsedNs: natural, isAnswer: fc.boolean() },
        plain,
      ),
      { maxLength: 3 },
    ),
    more: fc.nat(65_536),
    failures: fc.nat(65_536),
    counts: fc.dictionary(fc.constantFrom(...STEP_COUNTS), fc.integer({ min: 1, max: 1000 }), {
      ...plain,
    }),
  },
  plain,
)
const part = fc.record(
  { withheld: fc.array(text, { maxLength: 3 }), steps: fc.array(stepReport, { maxLength: 3 }) },
  plain,
)

const response = fc
  .record({
    index: natural,
    final: fc.boolean(),
    tensors,
    parameters,
    error: fc.option(error, { nil: undefined }),
    times: fc.option(times, { nil: undefined }),
    part: fc.option(part, { nil: undefined }),
  })
  .map(({ index, final, tensors, parameters, error, times, part: report }) => {
    const sent = error === undefined ? tensors : []
    return {
      type: 'response' as const,
      index,
      final: final || error !== undefined,
      outputs: sent.map(({ header }) => header),
      parts: sent.map(({ part }) => part),
      parameters,
      ...(error !== undefined && { error }),
      ...(times !== undefined && {
        times: report === undefined ? times : { ...times, part: report },
      }),
    }
  })

const body = fc.oneof(
  offer,
  response,
  fc.record({ type: fc.constant('accepted' as const), credits }, plain),
  fc.record({ type: fc.constant('refused' as const), error }, plain),
  fc.record({ type: fc.constant('credit' as const), credits }, plain),
  fc.record(
    { type: fc.constant('response-credit' as const), responses: natural, received: natural },
    plain,
  ),
  fc.record({ type: fc.constant('resend' as const), transfer: natural, offset: natural }, plain),
  fc.record({ type: fc.constant('cancel' as const), error }, plain),
  fc.record({ type: fc.constant('done' as const) }, plain),
)

/** Any message that may be sent. */
export const message: fc.Arbitrary<Message> = fc
  .tuple(memberId, natural, body)
  .map(([from, call, rest]) => ({ from, call, ...rest }))

/** Any tensor bytes. */
export const payload = fc.uint8Array({ maxLength: 100 })

/** Bytes that a stranger made of good ones: cut, changed, lengthened, or with a length of its own. */
export function damaged(good: fc.Arbitrary<Uint8Array>): fc.Arbitrary<Uint8Array> {
  const change = fc.record({ at: fc.nat(), byte: fc.nat(255) })
  const options = {
    bytes: good,
    cut: fc.option(fc.nat(), { nil: undefined }),
    changes: fc.array(change, { maxLength: 3 }),
    word: fc.option(
      fc.record({ at: fc.nat(), value: fc.constantFrom(0, 1, 0x7fffffff, 0xffffffff) }),
      { nil: undefined },
    ),
    more: fc.uint8Array({ maxLength: 9 }),
  }
  return fc.record(options).map(({ bytes, cut, changes, word, more }) => {
    const size = bytes.byteLength
    const all = Buffer.concat([
      cut === undefined ? bytes : bytes.subarray(0, cut % (size + 1)),
      more,
    ])
    for (const { at, byte } of changes) if (all.byteLength > 0) all[at % all.byteLength] = byte
    if (word !== undefined && all.byteLength >= 4) {
      all.writeUInt32LE(word.value, word.at % (all.byteLength - 3))
    }
    return new Uint8Array(all)
  })
}
