// needs: nats
import { ServeError } from '@tutti/errors'
import type { Executed, ResponseSink, StepResponse } from '@tutti/tensor'
import t from 'tap'
import { answer, envelope, tensorBytes } from '../testing/endpoints.ts'
import { FaultyNetwork, type SimulatedMember, SMALL, UNHARMED } from '../testing/faulty-network.ts'
import type { CallJob, CallListener } from './call.ts'
import type { RequestedCall } from './open-call.ts'
import { MAX_OPEN_CALLS } from './outgoing-calls.ts'

/** A router, and a replica that executes with `execute`, or none. */
function open(
  execute?: (job: CallJob, replica: SimulatedMember, now: () => number) => void,
  unasked?: number,
) {
  const network = new FaultyNetwork(() => UNHARMED, SMALL, unasked)
  const router = network.add('router', () => {})
  const now = (): number => network.now
  const replica: SimulatedMember | undefined =
    execute === undefined
      ? undefined
      : network.add('step', (job) => {
          if (replica !== undefined) execute(job, replica, now)
        })
  return { network, router, replica }
}

/** Asks `to` for a call whose only input has that many bytes. */
function request(to: string, bytes: number, listener: CallListener): RequestedCall {
  return { to, envelope: envelope(bytes), tensors: [tensorBytes(bytes)], listener }
}

/** Keeps what comes; takes a response only when told to. */
class Reader implements CallListener, ResponseSink {
  readonly responses: StepResponse[] = []
  readonly errors: ServeError[] = []
  readonly executed: Executed[] = []
  /** Functions that take each response but the last, in order. */
  readonly takes: (() => void)[] = []
  ends = 0

  get sink(): ResponseSink {
    return this
  }

  ended(): void {
    this.ends += 1
  }

  send(response: StepResponse): void {
    this.responses.push(response)
  }

  fail(error: ServeError, executed: Executed): void {
    this.errors.push(error)
    this.executed.push(executed)
  }

  ready(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.takes.push(resolve)
    return promise
  }
}

await t.test('an offer without an answer fails', async (t) => {
  for (const [size, reason, executed] of [
    [2, 'STEP_LOST', 'maybe'],
    [100, 'STEP_UNAVAILABLE', 'no'],
  ] as const) {
    const { network, router } = open()
    const reader = new Reader()
    router.outgoingCalls.open(0, request('step', size, reader))
    network.run(SMALL.silenceMs - 20)
    t.same(reader.errors, [])
    network.run(40)
    t.match(reader.errors, [{ reason, details: { replica: 'step', model: 'm', attempt: '1' } }])
    t.same([reader.executed, reader.ends], [[executed], 1])
    t.equal(router.outgoingCalls.size + router.outgoingTransfers.size, 0)
  }
})

await t.test('time in which the process did not listen is no silence of a replica', async (t) => {
  const { network, router } = open()
  const readers = [new Reader(), new Reader()] as const
  router.outgoingCalls.open(0, request('step', 2, readers[0]))
  const call = router.outgoingCalls.open(0, request('step', 100, readers[1]))
  network.inject('step', 'router', { type: 'accepted', call, credits: [] })
  network.run(SMALL.silenceMs - 20)
  router.outgoingCalls.missed(1000)
  network.run(1000)
  t.same(readers[0].errors, [])
  network.run(40)
  t.match(readers[0].errors, [{ reason: 'STEP_LOST' }])
  network.run(SMALL.waitMs - SMALL.silenceMs - 40)
  t.same(readers[1].errors, [])
  network.run(60)
  t.match(readers[1].errors, [{ reason: 'STEP_UNAVAILABLE' }])
})

await t.test('a replica that accepts and lets nothing be sent cannot have run', async (t) => {
  const { network, router } = open()
  const reader = new Reader()
  const call = router.outgoingCalls.open(0, request('step', 100, reader))
  network.inject('step', 'router', { type: 'accepted', call, credits: [] })
  network.run(SMALL.waitMs + 40)
  t.match(reader.errors, [{ reason: 'STEP_UNAVAILABLE' }])
})

await t.test(
  'what becomes of calls when their replica is gone or the broker is away',
  async (t) => {
    const { network, router } = open(() => {})
    const readers = [new Reader(), new Reader(), new Reader()]
    const [inline, unsent, other] = readers
    if (inline === undefined || unsent === undefined || other === undefined) return
    router.outgoingCalls.open(0, request('step', 1, inline))
    network.run(20)
    router.outgoingCalls.open(20, request('step', 100, unsent))
    router.outgoingCalls.open(20, request('else', 1, other))
    t.same(router.outgoingCalls.memberGone(20, 'step', 'dead'), [], 'what was accepted is decided')
    t.match(inline.errors, [{ reason: 'STEP_LOST' }])
    t.match(unsent.errors, [{ reason: 'STEP_UNAVAILABLE' }])
    t.same(other.errors, [])
    router.outgoingCalls.disconnected(20)
    t.match(other.errors, [{ reason: 'STEP_LOST' }])
  },
)

await t.test(
  'an offer that a dead replica never got is told from one that it may have',
  async (t) => {
    const { network, router } = open()
    const [unheard, heard] = [new Reader(), new Reader()]
    const first = router.outgoingCalls.open(0, request('step', 1, unheard))
    const second = router.outgoingCalls.open(0, request('step', 1, heard))
    network.run(20)
    const undecided = router.outgoingCalls.memberGone(20, 'step', 'dead')
    t.same(undecided, [first, second])
    t.same([...unheard.errors, ...heard.errors], [])
    router.outgoingCalls.noResponder(30, first)
    t.match(unheard.errors, [{ reason: 'STEP_UNAVAILABLE' }])
    router.outgoingCalls.lost(40, undecided)
    t.equal(unheard.errors.length, 1)
    t.match(heard.errors, [{ reason: 'STEP_LOST', message: /is gone/ }])
    t.equal(router.outgoingCalls.size, 0)
  },
)

await t.test('an offer that met a leaving replica too late goes elsewhere', async (t) => {
  const { network, router } = open(() => {})
  const [taken, late, twice] = [new Reader(), new Reader(), new Reader()]
  router.outgoingCalls.open(0, request('step', 1, taken))
  network.run(20)
  router.outgoingCalls.open(20, request('step', 1, late))
  t.same(router.outgoingCalls.memberGone(20, 'step', 'left'), [], 'all is decided')
  t.match(late.errors, [
    { reason: 'STEP_UNAVAILABLE', message: "replica 'step' left before it took the call" },
  ])
  t.match(taken.errors, [{ reason: 'STEP_LOST' }], 'what it took may have executed')
  router.outgoingCalls.open(30, request('else', 1, twice))
  router.outgoingCalls.pathBroken(30, 'else')
  router.outgoingCalls.memberGone(30, 'else', 'left')
  t.match(twice.errors, [{ reason: 'STEP_LOST' }], 'of two offers it may have taken the first')
})

/** Calls of a replica that answers with the bytes that it gets. */
function openEcho(unasked?: number) {
  const opened = open(({ key, inputs }, member, now) => {
    member.incomingCalls.respond(now(), key, answer(inputs[0] ?? new Uint8Array()))
    member.incomingCalls.ended(now(), key)
  }, unasked)
  const call = (size: number): Reader => {
    const { network, router } = opened
    const reader = new Reader()
    router.outgoingCalls.open(network.now, request('step', size, reader))
    network.settle()
    return reader
  }
  return { ...opened, call }
}

await t.test('a call of a tensor that goes unasked takes two messages', async (t) => {
  const { network, router, replica, call } = openEcho(SMALL.creditBytes)
  for (let i = 0; i < 3; i++) t.equal(call(16).ends, 1)
  t.same(network.said, ['offer', 'response', 'offer', 'response', 'offer', 'response'])
  t.equal(replica?.incomingCalls.size, 1, 'the last is done when the next offer says so')
  network.run(20)
  t.same(network.said.slice(6), ['done'], 'or soon')
  t.equal(
    (replica?.incomingCalls.size ?? 1) +
      router.outgoingTransfers.size +
      (replica?.outgoingTransfers.size ?? 1),
    0,
  )
})

await t.test('what is too much to go unasked waits for credits', async (t) => {
  const { network, router, call } = openEcho(20)
  const [small, large] = [call(16), call(100)]
  t.same([small.ends, large.ends], [1, 1])
  t.same(network.said.slice(0, 4), ['offer', 'response', 'offer', 'accepted'])
  t.equal(router.outgoingCalls.size, 0)
})

await t.test('many calls that are done are said to be done at once', async (t) => {
  const { network, call } = openEcho(SMALL.creditBytes)
  const readers = Array.from({ length: 3 }, () => new Reader())
  for (const reader of readers) {
    network.members.get('router')?.outgoingCalls.open(network.now, request('step', 1, reader))
  }
  network.settle()
  call(1)
  network.run(20)
  t.same(network.said.filter((type) => type === 'done').length, 1, 'the last, by itself')
})

await t.test('a response waits for memory, and not for ever', async (t) => {
  const size = 1000
  const keys: string[] = []
  const { network, router, replica } = open(({ key }, member, now) => {
    keys.push(key)
    member.incomingCalls.respond(now(), key, answer(tensorBytes(size), { final: false }))
  })
  const end = (key: string): void => {
    replica?.incomingCalls.respond(network.now, key, answer(tensorBytes(0), { index: 1 }))
    replica?.incomingCalls.ended(network.now, key)
  }
  const readers = Array.from({ length: 3 }, () => new Reader())
  for (const reader of readers) {
    router.outgoingCalls.open(network.now, request('step', 0, reader))
  }
  network.run(1500)
  t.same(
    readers.map(({ responses }) => responses.length),
    [1, 1, 0],
    'two fill what one sender may have',
  )
  readers[0]?.takes[0]?.()
  await Promise.resolve()
  network.run(1000)
  t.equal(readers[2]?.responses.length, 1, 'one that was read frees memory')
  const last = new Reader()
  router.outgoingCalls.open(network.now, request('step', 0, last))
  network.run(SMALL.waitMs + 100)
  t.match(last.errors, [{ reason: 'STEP_LOST' }])
  keys.forEach(end)
  for (const { takes } of readers) takes.at(-1)?.()
  await Promise.resolve()
  network.run(1000)
  t.same(
    readers.map(({ responses, ends }) => [responses.length, ends]),
    [
      [2, 1],
      [2, 1],
      [2, 1],
    ],
  )
  t.equal(
    router.outgoingCalls.size + router.outgoingCalls.reservedBytes + router.incomingTransfers.size,
    0,
  )
})

await t.test('the last response is taken at once: no credit is sent', async (t) => {
  const { network, router } = open(({ key }, member, now) => {
    member.incomingCalls.respond(now(), key, answer(tensorBytes(1000)))
    member.incomingCalls.ended(now(), key)
  })
  const reader = new Reader()
  router.outgoingCalls.open(0, request('step', 0, reader))
  network.run(1000)
  t.same([reader.responses.length, reader.takes.length, reader.ends], [1, 0, 1])
  t.equal(router.outgoingCalls.reservedBytes, 0)
})

await t.test('an error of the replica is the failure, behind its responses', async (t) => {
  for (const [reason, executed] of [
    ['QUEUE_FULL', 'maybe'],
    ['SERVER_STOPPING', 'no'],
  ] as const) {
    const { network, router } = open(({ key }, member, now) => {
      member.incomingCalls.respond(now(), key, answer(tensorBytes(60), { final: false }))
      member.incomingCalls.failed(now(), key, { error: new ServeError(reason, 'so it is') })
      member.incomingCalls.ended(now(), key)
    })
    const reader = new Reader()
    router.outgoingCalls.open(0, request('step', 0, reader))
    network.run(1000)
    t.match([reader.responses, reader.errors], [[{ index: 0 }], [{ reason, message: 'so it is' }]])
    t.same([reader.executed, reader.ends], [[executed], 1])
  }
})

await t.test(
  'a cancel ends the call at once, and whatever comes after changes nothing',
  async (t) => {
    const keys: string[] = []
    const { network, router, replica } = open(({ key }) => keys.push(key))
    const reader = new Reader()
    const call = router.outgoingCalls.open(0, request('step', 100, reader))
    network.run(20)
    const reason = new ServeError('CANCELLED', 'enough')
    router.outgoingCalls.cancel(network.now, call, reason)
    router.outgoingCalls.cancel(network.now, call, new ServeError('CANCELLED', 'again'))
    t.same(reader.errors, [reason])
    replica?.incomingCalls.respond(network.now, keys[0] ?? '', answer(tensorBytes(500)))
    network.run(1000)
    t.same(reader.errors, [reason])
    t.equal((replica?.incomingCalls.size ?? 1) + router.outgoingCalls.size, 0)
  },
)

await t.test('more calls than the bound are OVERLOADED', async (t) => {
  const { router } = open()
  for (let i = 0; i < MAX_OPEN_CALLS; i++) {
    router.outgoingCalls.open(0, request('step', 0, new Reader()))
  }
  t.throws(() => router.outgoingCalls.open(0, request('step', 0, new Reader())), {
    message: /calls to replicas are open/,
  })
})
