import { deepStrictEqual, ok } from 'node:assert/strict'
import { ServeError } from '@tutti/errors'
import * as fc from 'fast-check'
import t from 'tap'
import { decodeHeartbeat, encodeHeartbeat, sharesProtocol } from './heartbeat.ts'
import { HEARTBEAT_LIMIT_BYTES, HEARTBEAT_REVISIONS } from './limits.ts'
import type { Heartbeat } from './message.ts'
import { damaged, memberId } from './testing/message-arbitraries.ts'

const natural = fc.maxSafeNat()
const text = fc.string({ unit: 'binary', maxLength: 20 })
const REQUIRED = [
  'member',
  'role',
  'sequence',
  'description',
  'inFlight',
  'queued',
  'freeSlots',
  'freeBytes',
  'unaskedBytes',
  'draining',
  'transports',
  'revisions',
  'protocol',
] as const
const heartbeat: fc.Arbitrary<Heartbeat> = fc.record(
  {
    member: memberId,
    role: fc.constantFrom('step', 'router'),
    sequence: natural,
    description: text,
    inFlight: natural,
    queued: natural,
    freeSlots: natural,
    freeBytes: natural,
    unaskedBytes: natural,
    draining: fc.boolean(),
    transports: fc.uniqueArray(fc.constantFrom('nats', 'tcp')),
    revisions: fc.array(fc.tuple(text, natural, text), { maxLength: 4 }),
    protocol: fc.constant(1),
    newestProtocol: natural.map((more) => Math.max(1, more)),
    direct: fc.record({ address: text, key: text }, { noNullPrototype: true }),
  },
  { noNullPrototype: true, requiredKeys: [...REQUIRED] },
)

const GOOD: Heartbeat = {
  member: 'step-1',
  role: 'step',
  sequence: 3,
  description: 'd',
  inFlight: 0,
  queued: 0,
  freeSlots: 2,
  freeBytes: 100,
  unaskedBytes: 50,
  draining: false,
  transports: ['nats'],
  revisions: [['m', 1, 'abc']],
  protocol: 1,
}

/** `GOOD` as it is sent. */
const { member, transports, ...SAME } = GOOD
const WIRE = { ...SAME, peer: member, bearers: transports }

function toBytes(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value))
}

await t.test('any heartbeat comes out as it went in', async (t) => {
  const property = fc.property(heartbeat, (sent) => {
    deepStrictEqual(decodeHeartbeat(encodeHeartbeat(sent)), sent)
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 300 }))
})

await t.test('what only newer members say is dropped', async (t) => {
  const newer = { ...WIRE, bearers: ['quic', 'nats', 7], colour: 'red', newestProtocol: 2 }
  t.same(decodeHeartbeat(toBytes(newer)), { ...GOOD, newestProtocol: 2 })
})

await t.test('of a version that is not ours only what all versions say is read', async (t) => {
  const revisions = [['m', 2, 'abc']]
  const other = { peer: 'step-9', role: 'step', revisions, protocol: 2, newestProtocol: 3 }
  const read = decodeHeartbeat(toBytes({ ...other, sequence: 'odd', freeSlots: null }))
  t.match(read, { member: 'step-9', revisions, protocol: 2, newestProtocol: 3, freeSlots: 0 })
  t.throws(() => decodeHeartbeat(toBytes({ ...other, peer: 7 })), {
    reason: 'MALFORMED_MESSAGE',
    message: /peer/,
  })
  t.throws(() => decodeHeartbeat(toBytes({ ...other, revisions: 7 })), /revisions/)
})

await t.test('two members speak if their ranges of versions meet', async (t) => {
  const cases: [number, number | undefined, boolean][] = [
    [1, undefined, true],
    [1, 1, true],
    [0, 2, true],
    [1, 7, true],
    [0, undefined, false],
    [2, undefined, false],
    [2, 3, false],
  ]
  for (const [protocol, newestProtocol, shares] of cases) {
    const range = { protocol, ...(newestProtocol !== undefined && { newestProtocol }) }
    t.equal(sharesProtocol(range), shares, `${protocol} to ${newestProtocol}`)
  }
  t.notMatch(Buffer.from(encodeHeartbeat(GOOD)).toString(), /newestProtocol|direct/, 'as it was')
})

await t.test('damaged and random heartbeats are read or refused with a typed error', async (t) => {
  const strange = fc.oneof(
    damaged(heartbeat.map((one) => encodeHeartbeat(one))),
    fc.jsonValue().map(toBytes),
    fc.uint8Array(),
  )
  const property = fc.property(strange, (bytes) => {
    try {
      const read = decodeHeartbeat(bytes)
      deepStrictEqual(decodeHeartbeat(encodeHeartbeat(read)), read)
    } catch (error) {
      ok(error instanceof ServeError && error.reason === 'MALFORMED_MESSAGE', String(error))
    }
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 500 }))
})

await t.test('each field that is wrong is named with what came and what is wanted', async (t) => {
  const revision = ['m', 1, 'abc']
  const cases: readonly (readonly [string, unknown, string])[] = [
    ['heartbeat', [], 'got a list, want an object'],
    ['heartbeat', null, 'got null, want an object'],
    ['peer', { ...WIRE, peer: '' }, 'got string, want 1 to 255 bytes'],
    ['peer', { ...WIRE, peer: 'p'.repeat(256) }, 'got string, want 1 to 255 bytes'],
    ['role', { ...WIRE, role: 'broker' }, 'got string, want step or router'],
    ['sequence', { ...WIRE, sequence: -1 }, 'got -1, want an integer of at least 0'],
    ['description', { ...WIRE, description: 7 }, 'got 7, want a string'],
    ['inFlight', { ...WIRE, inFlight: 0.5 }, 'got 0.5, want'],
    ['queued', { ...WIRE, queued: '1' }, 'got string, want'],
    ['freeSlots', { ...WIRE, freeSlots: 2 ** 53 }, 'want an integer'],
    ['freeBytes', { ...WIRE, freeBytes: undefined }, 'got undefined'],
    ['draining', { ...WIRE, draining: 1 }, 'got 1, want true or false'],
    ['bearers', { ...WIRE, bearers: 'nats' }, 'got string, want a list'],
    ['revisions', { ...WIRE, revisions: {} }, 'got object, want a list'],
    [
      'revisions',
      { ...WIRE, revisions: Array.from({ length: HEARTBEAT_REVISIONS + 1 }, () => revision) },
      '4097 of them, want at most 4096',
    ],
    ['revisions[0]', { ...WIRE, revisions: ['m'] }, 'want [model, version, revision]'],
    ['revisions[1]', { ...WIRE, revisions: [revision, ['m', 1]] }, 'want [model,'],
    ['revisions[0][0]', { ...WIRE, revisions: [[1, 1, 'a']] }, 'got 1, want a string'],
    ['revisions[0][1]', { ...WIRE, revisions: [['m', '1', 'a']] }, 'got string, want'],
    ['revisions[0][2]', { ...WIRE, revisions: [['m', 1, null]] }, 'got null, want a string'],
    ['protocol', { ...WIRE, protocol: true }, 'got boolean, want'],
    ['newestProtocol', { ...WIRE, newestProtocol: -1 }, 'got -1, want an integer'],
    ['direct', { ...WIRE, direct: 'tcp' }, 'got string, want an object'],
    ['address', { ...WIRE, direct: { key: 'k' } }, 'got undefined, want a string'],
    ['key', { ...WIRE, direct: { address: 'a', key: 7 } }, 'got 7, want a string'],
  ]
  for (const [field, value, message] of cases) {
    t.throws(() => decodeHeartbeat(toBytes(value)), {
      reason: 'MALFORMED_MESSAGE',
      details: { field },
      message,
    })
  }
  t.throws(() => decodeHeartbeat(Buffer.from('{')), { message: 'heartbeat: no JSON' })
  const long = new Uint8Array(HEARTBEAT_LIMIT_BYTES + 1)
  t.throws(() => decodeHeartbeat(long), { message: `want at most ${HEARTBEAT_LIMIT_BYTES}` })
})

await t.test('a heartbeat over a bound is not sent, and the error says what to do', async (t) => {
  const revision = ['m', 1, 'a'] as const
  const many = {
    ...GOOD,
    revisions: Array.from({ length: HEARTBEAT_REVISIONS + 1 }, () => revision),
  }
  const cases: [Heartbeat, number | undefined, RegExp][] = [
    [many, undefined, /^heartbeat of 4097 model versions: one announces at most 4096: serve fewer/],
    [
      { ...GOOD, description: 'd'.repeat(HEARTBEAT_LIMIT_BYTES) },
      undefined,
      /it has \d+ bytes, at most 524288 fit: serve fewer/,
    ],
    [GOOD, 100, /it has \d+ bytes, the broker takes at most 100: raise max_payload/],
  ]
  for (const [heartbeat, maxPayload, message] of cases) {
    t.throws(() => encodeHeartbeat(heartbeat, maxPayload), { reason: 'MESSAGE_TOO_LARGE', message })
  }
})
