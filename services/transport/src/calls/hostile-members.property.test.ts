// needs: nats

import type { TensorPart } from '@tutti/protocol'
import * as fc from 'fast-check'
import t from 'tap'
import type { OutgoingMessage } from '../send-message.ts'
import { answer, envelope, tensorBytes } from '../testing/endpoints.ts'
import {
  FaultyNetwork,
  type SimulatedMember,
  SMALL,
  SMALL_INLINE,
  UNHARMED,
} from '../testing/faulty-network.ts'
import type { CallListener } from './call.ts'
import { HELD_SILENCES } from './taken-call.ts'

const CALL = fc.nat({ max: 4 })
const TRANSFER = fc.nat({ max: 6 })
const NUMBER = fc.oneof(fc.nat({ max: 3000 }), fc.constant(Number.MAX_SAFE_INTEGER))
const ERROR = fc.constant({
  code: 'INTERNAL',
  reason: 'INTERNAL',
  message: 'hostile',
  details: {},
} as const)
const CREDITS = fc.array(fc.record({ transfer: TRANSFER, upTo: NUMBER }), { maxLength: 4 })
const SIZES = fc.array(fc.nat({ max: 3000 }), { maxLength: 3 })

const UNASKED = { isUnasked: true } as const

/** Tensors of these sizes, small ones inline; the numbers of transfers repeat as they like. */
function toParts(sizes: readonly number[], transfer: number): TensorPart[] {
  return sizes.map((size, i) =>
    size <= SMALL_INLINE.each
      ? { kind: 'inline', bytes: tensorBytes(size) }
      : { kind: 'transfer', transfer: transfer + (i % 2), size, ...(size % 2 && UNASKED) },
  )
}

const headers = (sizes: readonly number[]) =>
  sizes.map((size, i) => ({ name: `x${i}`, datatype: 'UINT8', shape: [size] }) as const)

const MESSAGE: fc.Arbitrary<OutgoingMessage> = fc.oneof(
  fc
    .record({
      type: fc.constant('offer' as const),
      call: CALL,
      sizes: SIZES,
      transfer: TRANSFER,
      responseCredits: NUMBER,
      responseBytes: NUMBER,
      done: fc.array(CALL, { maxLength: 3 }),
    })
    .map(({ sizes, transfer, ...offer }) => ({
      ...offer,
      envelope: envelope(0, { inputs: headers(sizes) }),
      parts: toParts(sizes, transfer),
    })),
  fc.record({ type: fc.constant('accepted' as const), call: CALL, credits: CREDITS }),
  fc.record({ type: fc.constant('refused' as const), call: CALL, error: ERROR }),
  fc
    .record({
      type: fc.constant('response' as const),
      call: CALL,
      sizes: SIZES,
      transfer: TRANSFER,
      index: fc.oneof(fc.nat({ max: 5 }), NUMBER),
      final: fc.boolean(),
    })
    .map(({ sizes, transfer, ...message }) => ({
      ...message,
      outputs: headers(sizes),
      parts: toParts(sizes, transfer),
      parameters: new Map(),
    })),
  fc.record({ type: fc.constant('credit' as const), call: CALL, credits: CREDITS }),
  fc.record({
    type: fc.constant('response-credit' as const),
    call: CALL,
    responses: NUMBER,
    received: NUMBER,
  }),
  fc.record({
    type: fc.constant('resend' as const),
    call: CALL,
    transfer: TRANSFER,
    offset: NUMBER,
  }),
  fc.record({ type: fc.constant('cancel' as const), call: CALL, error: ERROR }),
  fc.record({ type: fc.constant('done' as const), call: CALL }),
)

/** A message that a hostile member sends, to which member, and when. */
interface Sent {
  readonly to: 'router' | 'step'
  readonly message: OutgoingMessage
  readonly afterMs: number
  readonly chunk: { readonly transfer: number; readonly offset: number; readonly size: number }
}

const SENT = fc.record<Sent>({
  to: fc.constantFrom('router', 'step'),
  message: MESSAGE,
  afterMs: fc.constantFrom(0, 0, 20, 100),
  chunk: fc.record({
    transfer: TRANSFER,
    offset: fc.nat({ max: 100 }),
    size: fc.integer({ min: 1, max: 64 }),
  }),
})

/** Ends of three calls that a router makes while `from` says what it likes. */
function runBeside(from: string, sent: readonly Sent[]) {
  const network = new FaultyNetwork(() => UNHARMED, SMALL, SMALL.creditBytes)
  const [router, step] = ['router', 'step'].map((id) => {
    const member: SimulatedMember = network.add(id, ({ key, inputs }) => {
      member.incomingCalls.respond(network.now, key, answer(inputs[0] ?? new Uint8Array()))
      member.incomingCalls.ended(network.now, key)
    })
    return member
  })
  if (router === undefined || step === undefined) throw new Error('no members')
  network.onEvent = () => {
    for (const { incomingTransfers, outgoingCalls, incomingCalls } of [router, step]) {
      // With two senders each has a part of the window, and always one piece.
      const most = SMALL.creditTotalBytes + SMALL.wholeLimitBytes
      if (incomingTransfers.outstanding > most) throw new Error('too much is under way')
      if (outgoingCalls.reservedBytes > SMALL.tensorBytes) throw new Error('over the budget')
      if (incomingCalls.slots.reservedBytes > SMALL.tensorBytes) throw new Error('over the budget')
    }
  }
  const ends = [0, 0, 0]
  const intact = [false, false, false]
  ends.forEach((_, i) => {
    const bytes = tensorBytes(100, i)
    const listener: CallListener = {
      sink: {
        send: ({ final, outputs }) => {
          if (final) ends[i] = (ends[i] ?? 0) + 1
          intact[i] = Buffer.from(bytes).equals(outputs[0]?.data ?? new Uint8Array())
        },
        fail: () => {
          ends[i] = (ends[i] ?? 0) + 1
        },
      },
      ended: () => {},
    }
    router.outgoingCalls.open(network.now, {
      to: 'step',
      envelope: envelope(100),
      tensors: [bytes],
      listener,
    })
  })
  for (const { to, message, afterMs, chunk } of sent) {
    network.inject(from, to, message)
    const { transfer, offset, size } = chunk
    const total = offset + size
    network.injectChunk(to, { from, transfer, offset, total, bytes: tensorBytes(size) })
    network.run(afterMs)
  }
  network.run(4 * HELD_SILENCES * SMALL.silenceMs)
  return { ends, intact, router, step }
}

await t.test('a stranger harms no call of others, and leaves nothing behind', async (t) => {
  fc.assert(
    fc.property(fc.array(SENT, { maxLength: 30 }), (sent) => {
      const { ends, intact, router, step } = runBeside('stranger', sent)
      if (ends.some((count) => count !== 1) || !intact.every(Boolean)) return false
      for (const { incomingTransfers, outgoingTransfers, outgoingCalls, incomingCalls } of [
        router,
        step,
      ]) {
        const inPart =
          incomingTransfers.size + incomingTransfers.earlySize + incomingTransfers.outstanding
        const kept =
          inPart +
          outgoingTransfers.size +
          outgoingCalls.size +
          incomingCalls.size +
          incomingCalls.running
        if (
          kept +
            outgoingCalls.reservedBytes +
            incomingCalls.slots.reservedBytes +
            incomingCalls.heldBytes >
          0
        )
          return false
      }
      return true
    }),
    { numRuns: 100 },
  )
  t.pass()
})

await t.test(
  'messages forged in the name of a member make no call end twice or never',
  async (t) => {
    for (const from of ['router', 'step']) {
      fc.assert(
        fc.property(fc.array(SENT, { maxLength: 30 }), (sent) =>
          runBeside(from, sent).ends.every((count) => count === 1),
        ),
        { numRuns: 50 },
      )
    }
    t.pass()
  },
)
