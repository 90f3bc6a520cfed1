import { Metadata } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { helpAddress, REASONS, ServeError, STATUS_CODES } from '@tutti/errors'
import * as fc from 'fast-check'
import t from 'tap'
import { PROTO_OPTIONS } from '../services.ts'
import { toServiceError } from '../testing/service-error.ts'
import { capText, utf8Length } from './cap-text.ts'
import { fromGrpcStatus, STATUS_DETAILS_KEY, toGrpcStatus } from './grpc-status.ts'
import { errorHeaders, toHttpStatus } from './http-status.ts'
import { decodeErrorInfo, encodeStatusDetails } from './status-details.ts'

const details = {
  ensemble: 'e',
  step: 's',
  model: 'm',
  version: '3',
  replica: 'r-1',
  attempt: '2',
  field: 'inputs.x',
}

await t.test('every reason comes back with its code, text and place', async (t) => {
  for (const reason of Object.keys(REASONS)) {
    const error = new ServeError(reason as keyof typeof REASONS, `why ${reason}`, { details })
    t.match(fromGrpcStatus(toServiceError(error)), {
      reason,
      code: error.code,
      message: error.message,
      details,
    })
  }
})

await t.test('the details are a google.rpc.Status with an ErrorInfo', async (t) => {
  const definition = loadSync('status_details.proto', PROTO_OPTIONS)
  const types = definition as unknown as Record<
    string,
    { deserialize(bytes: Buffer): Record<string, unknown> }
  >
  const { metadata } = toServiceError(
    new ServeError('QUEUE_FULL', 'no', { details: { model: 'm' } }),
  )
  const [bytes] = metadata.get(STATUS_DETAILS_KEY)
  t.ok(Buffer.isBuffer(bytes))
  if (!Buffer.isBuffer(bytes)) return
  const { details: packed, ...rest } = types['google.rpc.Status']?.deserialize(bytes) ?? {}
  t.strictSame(rest, { code: 14, message: 'no' })
  const [any] = packed as [{ type_url: string; value: Buffer }]
  t.equal(any.type_url, 'type.googleapis.com/google.rpc.ErrorInfo')
  const [, help] = packed as readonly { type_url: string; value: Buffer }[]
  t.equal(help?.type_url, 'type.googleapis.com/google.rpc.Help')
  t.strictSame(types['google.rpc.Help']?.deserialize(help?.value ?? Buffer.alloc(0)), {
    links: [{ description: 'What it means, and what to do', url: helpAddress('QUEUE_FULL') }],
  })
  t.strictSame(types['google.rpc.ErrorInfo']?.deserialize(any.value), {
    reason: 'QUEUE_FULL',
    domain: 'tutti.dev',
    metadata: { model: 'm' },
  })
})

await t.test('a refusal that passes says when to try again, to each kind of client', async (t) => {
  const error = new ServeError('QUOTA_EXCEEDED', 'no', { retryAfterMs: 1200.5 })
  t.equal(toHttpStatus(error), 429)
  t.equal(errorHeaders(error)['retry-after'], '2')
  const { metadata } = toServiceError(error.withPrefix('in x, '))
  t.same(metadata.get('grpc-retry-pushback-ms'), ['1201'])
  const [bytes] = metadata.get(STATUS_DETAILS_KEY)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a test
  const types = loadSync('status_details.proto', PROTO_OPTIONS) as unknown as Record<
    string,
    { deserialize(bytes: Buffer): { readonly details: readonly { readonly value: Buffer }[] } }
  >
  const [, , retry] = types['google.rpc.Status']?.deserialize(bytes as Buffer).details ?? []
  t.match(types['google.rpc.RetryInfo']?.deserialize(retry?.value ?? Buffer.alloc(0)), {
    retry_delay: { seconds: '1', nanos: 201_000_000 },
  })
  const other = toServiceError(new ServeError('OVERLOADED', 'no'))
  t.same(other.metadata.get('grpc-retry-pushback-ms'), [])
})

await t.test('errors of other origin get the usual reason of their code', async (t) => {
  const cases: readonly (readonly [number, string, string])[] = [
    [1, 'CANCELLED', 'CANCELLED'],
    [3, 'INVALID_ARGUMENT', 'INVALID_REQUEST'],
    [4, 'DEADLINE_EXCEEDED', 'DEADLINE_EXCEEDED'],
    [8, 'RESOURCE_EXHAUSTED', 'OVERLOADED'],
    [14, 'UNAVAILABLE', 'SERVER_NOT_READY'],
    [16, 'UNAUTHENTICATED', 'INTERNAL'],
    [99, 'UNKNOWN', 'INTERNAL'],
  ]
  for (const [number, code, reason] of cases) {
    t.match(fromGrpcStatus({ code: number, details: 'x' }), { code, reason, message: 'x' })
  }
})

await t.test('details that are not ours or not readable are left alone', async (t) => {
  const foreign = new Metadata()
  foreign.set(
    STATUS_DETAILS_KEY,
    encodeStatusDetails(5, '', { reason: 'QUEUE_FULL', domain: 'other.dev', metadata: {} }),
  )
  t.match(fromGrpcStatus({ code: 5, details: 'x', metadata: foreign }), { reason: 'NOT_FOUND' })
  const broken = new Metadata()
  broken.set(STATUS_DETAILS_KEY, Buffer.from([0x1a, 200]))
  t.match(fromGrpcStatus({ code: 5, details: 'x', metadata: broken }), { reason: 'NOT_FOUND' })
})

await t.test('no text breaks the headers or makes them large', async (t) => {
  const nasty = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 6000 }),
    fc.string({ unit: fc.constantFrom('\ud800', '\n', '%', 'é', '😀', 'a'), maxLength: 6000 }),
  )
  fc.assert(
    fc.property(nasty, (text) => {
      const error = new ServeError('INTERNAL', text, { details: { model: text, step: text } })
      const status = toGrpcStatus(error)
      const encoded = encodeURI(status.details)
      t.match(encoded, /^[\x20-\x7e]*$/)
      const trailers = new Map(status.trailers)
      t.ok(encoded.length + (trailers.get(STATUS_DETAILS_KEY)?.length ?? 8000) < 8000)
      for (const value of Object.values(errorHeaders(error))) t.match(value, /^[\x20-\x7e]{0,256}$/)
    }),
    { numRuns: 200 },
  )
})

await t.test('short texts stay and long ones are cut with a mark', async (t) => {
  t.equal(capText('short', 10, utf8Length), 'short')
  t.equal(capText('a'.repeat(30), 20, utf8Length), `${'a'.repeat(10)} ... (cut)`)
  t.equal(capText('é'.repeat(30), 20, utf8Length), `${'é'.repeat(5)} ... (cut)`)
  t.equal(capText('\ud800', 20, utf8Length), '\ufffd')
})

await t.test(
  'status details decode to what was encoded, and any bytes to something or an error',
  async (t) => {
    const text = fc.string({ unit: 'grapheme', maxLength: 20 })
    fc.assert(
      fc.property(
        fc.nat(16),
        text,
        text,
        text,
        fc.dictionary(text, text),
        (code, message, reason, domain, metadata) => {
          const info = { reason, domain, metadata: { ...metadata } }
          t.same(decodeErrorInfo(encodeStatusDetails(code, message, info)), info)
        },
      ),
    )
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        try {
          decodeErrorInfo(Buffer.from(bytes))
        } catch (error) {
          t.ok(error instanceof Error)
        }
      }),
      { numRuns: 500 },
    )
  },
)

await t.test('HTTP statuses follow the codes, two reasons apart', async (t) => {
  const special: Readonly<Record<string, number>> = {
    UNAUTHENTICATED: 401,
    PERMISSION_DENIED: 403,
    NOT_FOUND: 404,
    INTERNAL: 500,
    UNIMPLEMENTED: 501,
    UNAVAILABLE: 503,
    RESOURCE_EXHAUSTED: 503,
    DEADLINE_EXCEEDED: 504,
  }
  for (const code of Object.keys(STATUS_CODES)) {
    const error = new ServeError('INTERNAL', '', { code: code as keyof typeof STATUS_CODES })
    t.equal(toHttpStatus(error), special[code] ?? 400, code)
  }
  t.equal(toHttpStatus(new ServeError('METHOD_NOT_ALLOWED', '')), 405)
  t.equal(toHttpStatus(new ServeError('MESSAGE_TOO_LARGE', '')), 413)
})

await t.test('HTTP headers say where an error happened', async (t) => {
  t.strictSame(errorHeaders(new ServeError('QUEUE_FULL', 'no', { details })), {
    'tutti-error-reason': 'QUEUE_FULL',
    'tutti-error-help': helpAddress('QUEUE_FULL'),
    'tutti-error-ensemble': 'e',
    'tutti-error-step': 's',
    'tutti-error-model': 'm',
    'tutti-error-version': '3',
    'tutti-error-replica': 'r-1',
    'tutti-error-attempt': '2',
    'tutti-error-field': 'inputs.x',
  })
  t.strictSame(
    errorHeaders(new ServeError('QUEUE_FULL', 'no', { details: { model: ' a\r\nb: c' } })),
    {
      'tutti-error-reason': 'QUEUE_FULL',
      'tutti-error-help': helpAddress('QUEUE_FULL'),
      'tutti-error-model': 'a??b: c',
    },
  )
})
