// needs: nats
import { systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Message } from '@tutti/protocol'
import { Lender } from '@tutti/tensor/testing'
import t from 'tap'
import { TICK_MS } from '../members/listened-time.ts'
import type { OutgoingMessage } from '../send-message.ts'
import { answer, envelope, tensorBytes } from '../testing/endpoints.ts'
import { SMALL } from '../testing/faulty-network.ts'
import { IncomingTransfers } from '../transfers/incoming-transfers.ts'
import { OutgoingTransfers } from '../transfers/outgoing-transfers.ts'
import type { CallJob } from './call.ts'
import { IncomingCalls } from './incoming-calls.ts'
import { TOMBSTONE_MS } from './recent-keys.ts'
import { FORGOTTEN_SILENCES, HELD_SILENCES } from './taken-call.ts'

type Offer = Extract<Message, { type: 'offer' }>

const inline = (call: number, o: Partial<Offer> = {}): Offer => ({
  from: 'router',
  type: 'offer',
  call,
  envelope: envelope(1),
  parts: [{ kind: 'inline', bytes: tensorBytes(1) }],
  responseCredits: 2,
  ...o,
})
const transferred = (call: number, size: number, o: Partial<Offer> = {}): Offer =>
  inline(call, {
    envelope: envelope(size),
    parts: [{ kind: 'transfer', transfer: call, size }],
    ...o,
  })

const unasked = (call: number, size: number): Offer =>
  transferred(call, size, { parts: [{ kind: 'transfer', transfer: call, size, isUnasked: true }] })
const chunk = (transfer: number, size: number) =>
  ({ from: 'router', transfer, offset: 0, total: size, bytes: tensorBytes(size) }) as const

/** The calls of a callee alone; what it says and what it executes is kept. */
function open() {
  const said: OutgoingMessage[] = []
  const jobs: CallJob[] = []
  const send = (_to: string, message: OutgoingMessage): void => void said.push(message)
  const incomingTransfers = new IncomingTransfers(SMALL, send)
  const outgoingTransfers = new OutgoingTransfers(() => ({ wholeBytes: 16, chunkBytes: 8 }))
  const calls = new IncomingCalls({
    self: 'step',
    settings: SMALL,
    send,
    incomingTransfers,
    outgoingTransfers,
    inlineLimits: () => ({ each: 4, total: 8 }),
    unaskedBytes: () => 0,
    clock: systemClock,
    execute: (job) => jobs.push(job),
  })
  /** The types said since last asked, with the reason of an error. */
  const heard = (): string[] =>
    said.splice(0).map((message) => {
      const error = 'error' in message ? message.error : undefined
      return error === undefined ? message.type : `${message.type} ${error.reason}`
    })
  return { calls, incomingTransfers, outgoingTransfers, jobs, heard }
}

await t.test('an offer that comes again is executed once', async (t) => {
  const { calls, jobs, heard } = open()
  calls.on(0, inline(1))
  t.same(heard(), [], 'its response says that it is taken')
  calls.on(0, inline(1))
  t.same(heard(), ['accepted'])
  calls.respond(1, jobs[0]?.key ?? '', answer(tensorBytes(1)))
  calls.ended(1, jobs[0]?.key ?? '')
  calls.on(2, { from: 'router', call: 1, type: 'done' })
  calls.on(3, inline(1))
  t.same(heard(), ['response', 'response STEP_LOST'])
  t.equal(jobs.length, 1)
  calls.tick(3 + TOMBSTONE_MS)
  t.equal(calls.size + calls.running, 0)
})

await t.test('a call is said to be taken at once, by its response, or soon', async (t) => {
  const { calls, jobs, incomingTransfers: transfers, heard } = open()
  calls.on(0, transferred(1, 16))
  t.same(heard(), ['accepted'], 'its caller waits for credit')
  calls.on(0, unasked(2, 8))
  t.same(heard(), [])
  transfers.chunk(0, chunk(2, 8))
  calls.respond(0, jobs[0]?.key ?? '', answer(tensorBytes(1)))
  calls.on(0, unasked(3, 8))
  calls.tick(TICK_MS)
  t.same(heard(), ['response', 'accepted'])
  calls.on(TICK_MS, inline(4))
  calls.drain()
  t.same(heard(), ['accepted'], 'a farewell may follow')
  calls.drain()
  t.same(heard(), [])
})

await t.test('inputs that come before their offer are there with it', async (t) => {
  const { calls, jobs, incomingTransfers: transfers, heard } = open()
  transfers.chunk(0, chunk(1, 8))
  t.equal(calls.slots.reservedBytes, 0)
  calls.on(0, unasked(1, 8))
  t.same(jobs[0]?.inputs, [Buffer.from(tensorBytes(8))])
  t.same([calls.slots.reservedBytes, transfers.outstanding, transfers.earlySize], [8, 0, 0])
  calls.callerGone(0, 'router', 'left')
  t.same(heard(), [])
})

await t.test('of an offer that is refused nothing is kept, whenever it comes', async (t) => {
  const { calls, incomingTransfers: transfers, heard } = open()
  calls.drain()
  transfers.chunk(0, chunk(1, 8))
  calls.on(0, unasked(1, 8))
  calls.on(0, unasked(2, 8))
  transfers.chunk(0, chunk(2, 8))
  t.same(heard(), ['refused SERVER_STOPPING', 'refused SERVER_STOPPING'])
  t.same([calls.slots.reservedBytes, transfers.outstanding], [0, 0])
  transfers.tick(SMALL.stallMs)
  t.equal(transfers.earlySize, 0)
})

await t.test('an offer says which calls before it are done', async (t) => {
  const { calls, jobs, heard } = open()
  calls.on(0, inline(1))
  calls.respond(0, jobs[0]?.key ?? '', answer(tensorBytes(8)))
  calls.ended(0, jobs[0]?.key ?? '')
  t.equal(calls.heldBytes, 8)
  calls.on(0, inline(2, { from: 'stranger', done: [1] }))
  t.equal(calls.heldBytes, 8, 'of the same caller')
  calls.on(0, inline(2, { done: [1, 99] }))
  t.same([calls.heldBytes, calls.size], [0, 2])
  t.same(heard(), ['response'])
})

await t.test('responses go unasked as far as the caller takes them so', async (t) => {
  const { calls, jobs, outgoingTransfers } = open()
  calls.on(0, inline(1, { responseBytes: 12, responseCredits: 3 }))
  const key = jobs[0]?.key ?? ''
  const sizes = [8, 8, 5]
  for (const [index, size] of sizes.entries()) {
    calls.respond(0, key, answer(tensorBytes(size), { index, final: index === 2 }))
  }
  t.match(outgoingTransfers.next(0), { total: 8 })
  t.equal(outgoingTransfers.next(0), undefined, 'the others wait for credit')
  calls.callerGone(0, 'router', 'left')
})

await t.test('a cancel that overtakes its offer is remembered', async (t) => {
  const { calls, jobs, heard } = open()
  const error = { code: 'CANCELLED', reason: 'CANCELLED', message: 'gone', details: {} } as const
  calls.on(0, { from: 'router', call: 1, type: 'cancel', error })
  calls.on(0, inline(1))
  t.same(heard(), ['refused STEP_UNAVAILABLE'], 'it was not executed')
  calls.on(0, { ...inline(1), from: 'other' })
  t.equal(jobs.length, 1, 'another caller’s call of that number is its own')
  calls.tick(TOMBSTONE_MS)
  calls.on(TOMBSTONE_MS, inline(1))
  t.equal(jobs.length, 2, 'for a while')
})

await t.test('what is refused, and why', async (t) => {
  const twice: Offer['parts'] = [
    { kind: 'transfer', transfer: 1, size: 9 },
    { kind: 'transfer', transfer: 1, size: 9 },
  ]
  const late = { ...envelope(1), remainingMs: 0 }
  const cases: readonly (readonly [string, Offer])[] = [
    ['MALFORMED_MESSAGE', inline(1, { responseCredits: 0 })],
    ['MALFORMED_MESSAGE', inline(1, { parts: twice })],
    ['MESSAGE_TOO_LARGE', transferred(1, SMALL.tensorBytesPerMember + 1)],
    ['DEADLINE_EXCEEDED', inline(1, { envelope: late })],
  ]
  for (const [reason, offer] of cases) {
    const { calls, jobs, heard } = open()
    calls.on(0, offer)
    t.same(heard(), [`refused ${reason}`])
    t.equal(jobs.length + calls.size + calls.slots.reservedBytes, 0)
  }
  const { calls, heard } = open()
  calls.drain()
  calls.on(0, inline(1))
  t.same(heard(), ['refused SERVER_STOPPING'])
})

await t.test('bytes that are taken refuse what does not fit, until they are free', async (t) => {
  const { calls, heard } = open()
  calls.on(0, transferred(1, 1000))
  calls.on(0, transferred(2, 1000))
  calls.on(0, transferred(3, 1000))
  t.same(heard(), ['accepted', 'accepted', 'refused OVERLOADED'])
  calls.callerGone(1, 'router', 'is gone')
  t.equal(calls.slots.reservedBytes + calls.size, 0)
  heard()
  calls.on(2, transferred(4, 1000))
  t.same(heard(), ['accepted'])
})

await t.test('inputs that stop coming, or come too late, are never executed', async (t) => {
  const { calls, incomingTransfers: transfers, jobs, heard } = open()
  calls.on(0, transferred(1, 20))
  transfers.tick(SMALL.stallMs)
  transfers.tick(2 * SMALL.stallMs)
  t.same(heard(), ['accepted', 'credit', 'resend', 'refused STEP_UNAVAILABLE'])
  const timed = { ...envelope(20), remainingMs: 50 }
  calls.on(1000, transferred(2, 20, { envelope: timed }))
  calls.tick(1050)
  t.same(heard(), ['accepted', 'refused DEADLINE_EXCEEDED'])
  t.equal(jobs.length + calls.slots.reservedBytes + transfers.size, 0)
})

await t.test('what is left of the time counts from arrival', async (t) => {
  const { calls, incomingTransfers: transfers, jobs } = open()
  const timed = { ...envelope(10), remainingMs: 100 }
  calls.on(0, transferred(1, 10, { envelope: timed }))
  transfers.chunk(30, chunk(1, 10))
  t.equal(jobs[0]?.envelope.remainingMs, 70)
  calls.tick(100)
  t.match(jobs[0]?.signal.reason, { reason: 'DEADLINE_EXCEEDED' })
})

await t.test('an execution keeps its slot and its bytes until it ends', async (t) => {
  const { calls, incomingTransfers: transfers, jobs } = open()
  calls.on(0, transferred(1, 10))
  transfers.chunk(0, chunk(1, 10))
  calls.callerGone(1, 'router', 'is gone')
  t.match(jobs[0]?.signal.reason, { reason: 'CANCELLED', message: "caller 'router' is gone" })
  t.equal(calls.size, 0)
  t.same([calls.running, calls.slots.reservedBytes], [1, 10])
  t.equal(calls.slots.freeSlots, SMALL.maxCalls - 1)
  calls.ended(2, jobs[0]?.key ?? '')
  t.same([calls.running, calls.slots.reservedBytes, calls.slots.freeSlots], [0, 0, SMALL.maxCalls])
})

await t.test('a failure is the last response, behind those that wait', async (t) => {
  const { calls, jobs, heard } = open()
  calls.on(0, inline(1, { responseCredits: 1 }))
  const key = jobs[0]?.key ?? ''
  for (let index = 0; index < 2; index += 1) {
    calls.respond(1, key, answer(tensorBytes(1), { index, final: false }))
  }
  calls.failed(1, key, { error: new ServeError('QUEUE_FULL', 'full') })
  calls.failed(1, key, { error: new ServeError('INTERNAL', 'again') })
  calls.respond(1, key, answer(tensorBytes(1), { index: 3 }))
  calls.ended(1, key)
  t.equal(calls.running, 0)
  t.same(heard(), ['response'])
  calls.on(2, {
    from: 'router',
    call: 1,
    type: 'response-credit',
    responses: 9,
    received: 1,
  })
  t.same(heard(), ['response', 'response QUEUE_FULL'])
  calls.failed(3, 'missing', { error: new ServeError('INTERNAL', 'late') })
  t.same(heard(), [], 'a call that has ended sends nothing')
})

await t.test('a caller that takes nothing loses its answer in the end', async (t) => {
  const { calls, jobs, outgoingTransfers, heard } = open()
  calls.on(0, inline(1))
  const key = jobs[0]?.key ?? ''
  for (let index = 0; index < 3; index += 1) {
    calls.respond(1000, key, answer(tensorBytes(100), { index, final: index === 2 }))
  }
  calls.ended(1000, key)
  const asks = {
    from: 'router',
    call: 1,
    type: 'response-credit',
    responses: 2,
    received: 2,
  } as const
  const end = 1000 + HELD_SILENCES * SMALL.silenceMs
  for (let now = 1000; now < end; now += SMALL.silenceMs) {
    calls.on(now, asks)
    calls.tick(now)
  }
  t.same(heard(), ['response', 'response'], 'one waits for credit')
  calls.tick(end)
  t.same(heard(), ['response STEP_LOST'])
  t.equal(calls.size + calls.heldBytes + outgoingTransfers.size, 0)
})

await t.test('a caller that asks no more has forgotten its calls', async (t) => {
  const { calls, jobs, heard } = open()
  calls.on(0, inline(1))
  calls.on(0, inline(2))
  calls.respond(1000, jobs[0]?.key ?? '', answer(tensorBytes(1)))
  calls.ended(1000, jobs[0]?.key ?? '')
  const forgotten = FORGOTTEN_SILENCES * SMALL.silenceMs
  calls.on(500, {
    from: 'router',
    call: 2,
    type: 'response-credit',
    responses: 2,
    received: 0,
  })
  calls.tick(499 + forgotten)
  t.notOk(jobs[1]?.signal.aborted)
  calls.missed(100)
  calls.tick(599 + forgotten)
  t.notOk(jobs[1]?.signal.aborted, 'while the process did not listen nothing was to be heard')
  calls.tick(600 + forgotten)
  t.match(jobs[1]?.signal.reason, { reason: 'CANCELLED' }, 'what it executes is given up')
  t.equal(calls.size, 1)
  calls.tick(1100 + forgotten)
  t.equal(calls.size, 0, 'an answer whose end is not confirmed does not hold up a drain')
  t.same(heard().slice(2), ['response STEP_LOST', 'response STEP_LOST'])
})

await t.test('after a broken connection every caller hears what became of its call', async (t) => {
  const { calls, jobs, heard } = open()
  calls.on(0, inline(1))
  calls.on(0, transferred(2, 20))
  calls.disconnected(1)
  t.match(jobs[0]?.signal.reason, { reason: 'STEP_LOST' })
  heard()
  calls.reconnected()
  calls.reconnected()
  t.same(heard(), ['response STEP_LOST', 'refused STEP_UNAVAILABLE'])
})

await t.test('who asks for a call that is not known is told so', async (t) => {
  const { calls, jobs, heard } = open()
  calls.on(0, {
    from: 'router',
    call: 9,
    type: 'response-credit',
    responses: 5,
    received: 0,
  })
  t.same(heard(), ['response STEP_LOST'])
  calls.on(0, inline(1))
  calls.respond(0, jobs[0]?.key ?? '', answer(tensorBytes(1)))
  const asks: Message = {
    from: 'router',
    call: 1,
    type: 'response-credit',
    responses: 2,
    received: 0,
  }
  calls.on(1, asks)
  t.same(heard(), ['response'], 'it may be on its way')
  calls.on(2 * SMALL.stallMs, asks)
  t.same(heard(), ['response STEP_LOST'])
})

await t.test(
  'an execution does not wait for ever for a caller whose cancel was lost',
  async (t) => {
    const { calls, jobs, heard } = open()
    calls.on(0, inline(1))
    const { key = '', signal } = jobs[0] ?? {}
    for (let index = 0; index < 2; index += 1) {
      calls.respond(1, key, answer(tensorBytes(1), { index, final: false }))
    }
    const ready = calls.ready(key)
    t.ok(ready !== undefined, 'both responses that were granted are sent')
    const asks = {
      from: 'router',
      call: 1,
      type: 'response-credit',
      responses: 2,
      received: 2,
    } as const
    calls.on(HELD_SILENCES * SMALL.silenceMs, asks)
    calls.tick(HELD_SILENCES * SMALL.silenceMs + 1)
    t.notOk(signal?.aborted, 'a slow caller is heard of')
    heard()
    calls.tick(2 * HELD_SILENCES * SMALL.silenceMs)
    await ready
    t.match(signal?.reason, { reason: 'CANCELLED' })
    t.same(heard(), ['response STEP_LOST'])
    calls.ended(2 * HELD_SILENCES * SMALL.silenceMs, key)
    t.equal(calls.size + calls.running + calls.heldBytes, 0)
  },
)

await t.test('outputs that are lent are kept until the caller has read them', async (t) => {
  const { calls, jobs, heard } = open()
  calls.on(0, inline(1))
  const key = jobs[0]?.key ?? ''
  const lender = new Lender()
  const respond = (index: number, size: number, final = false): void => {
    const { outputs, ...others } = answer(tensorBytes(size), { index, final })
    const { tensors, retain, end } = lender.lend(outputs)
    calls.respond(1, key, { ...others, outputs: tensors, retain })
    end()
  }
  respond(0, 1)
  t.equal(lender.open, 0, 'a small one travels in the message')
  respond(1, 100)
  respond(2, 1, true)
  calls.ended(1, key)
  t.same(heard(), ['response', 'response'])
  t.equal(lender.open, 2, 'one that the caller has not read, and one that waits for credit')
  calls.on(2, {
    from: 'router',
    call: 1,
    type: 'response-credit',
    responses: 4,
    received: 2,
  })
  t.same(heard(), ['response'])
  t.equal(lender.open, 0)
})

await t.test('a caller that leaves gives back what was lent for it', async (t) => {
  const { calls, jobs } = open()
  calls.on(0, inline(1))
  const lender = new Lender()
  for (let index = 0; index < 4; index += 1) {
    const { outputs, ...others } = answer(tensorBytes(100), { index, final: false })
    const { tensors, retain, end } = lender.lend(outputs)
    calls.respond(1, jobs[0]?.key ?? '', { ...others, outputs: tensors, retain })
    end()
  }
  t.equal(lender.open, 4)
  const error = { code: 'CANCELLED', reason: 'CANCELLED', message: 'gone', details: {} } as const
  calls.on(2, { from: 'router', call: 1, type: 'cancel', error })
  t.equal(lender.open, 0)
})
