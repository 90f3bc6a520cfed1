import { deepEqual, ok } from 'node:assert/strict'
import { createManualClock } from '@tutti/chassis/testing'
import type { ServeError } from '@tutti/errors'
import * as fc from 'fast-check'
import t from 'tap'
import { actOn } from '../testing/act-on-ticket.ts'
import { Admission } from './admission.ts'
import { outsideShare } from './admission-bounds.ts'
import { type AdmissionTicket, ClientShare, type WaitingCall } from './admission-ticket.ts'
import { watchRates } from './rate-watch.ts'

/** A call of a test: how it was ended, if it was. */
class Call implements WaitingCall {
  movedBytes = 0
  error: ServeError | undefined
  readonly ticket: AdmissionTicket
  /** Further ones of the same call. */
  readonly others: AdmissionTicket[] = []

  constructor(ticket: AdmissionTicket) {
    this.ticket = ticket.belongTo(this)
  }

  endWaiting(error: ServeError): void {
    this.error = error
    for (const ticket of [this.ticket, ...this.others]) ticket.close()
  }

  get reason(): string | undefined {
    return this.error?.reason
  }
}

function open(admission: Admission, connection = {}, identity?: ClientShare): Call {
  return new Call(admission.open(connection, identity))
}

/** Counts of ended calls by reason, without those that are 0. */
function endedBy(admission: Admission): Record<string, number> {
  const [family] = admission.ended.families()
  const counts = (family?.series ?? []).map(({ labels, value }) => [labels[0]?.[1] ?? '', value])
  return Object.fromEntries(counts.filter(([, value]) => value !== 0))
}

await t.test('for a newcomer the call ends that has waited longest for its client', (t) => {
  const admission = new Admission({ maxBytes: 1000, maxWaitingBytes: 1000 })
  const [busy, first, second] = [open(admission), open(admission), open(admission)]
  busy.ticket.charge(400)
  busy.ticket.enter()
  first.ticket.charge(250)
  second.ticket.charge(250)
  const late = open(admission)
  late.ticket.charge(200)
  t.match(first.error, {
    reason: 'OVERLOADED',
    code: 'RESOURCE_EXHAUSTED',
    message: /900 bytes .* the bound is 1000; this call has waited longest for its client/,
  })
  t.same([busy.reason, second.reason, late.reason], [undefined, undefined, undefined])
  t.equal(admission.bytes, 850)
  t.same(endedBy(admission), { pool: 1 })
  t.end()
})

await t.test('answers that are not read wait like requests that are not whole', (t) => {
  const admission = new Admission({ maxBytes: 1000, maxWaitingBytes: 1000 })
  const [answered, begun] = [open(admission), open(admission)]
  answered.ticket.charge(10)
  answered.ticket.enter()
  begun.ticket.charge(10)
  answered.ticket.charge(890)
  answered.ticket.leave()
  open(admission).ticket.charge(95)
  t.same([answered.reason, begun.reason], [undefined, 'OVERLOADED'], 'it has waited longer')
  open(admission).ticket.charge(95)
  t.equal(answered.reason, 'OVERLOADED')
  t.end()
})

await t.test('a client that sends or takes something is waited for anew', (t) => {
  const admission = new Admission({ maxBytes: 1000, maxWaitingBytes: 1000 })
  const [taking, other] = [open(admission), open(admission)]
  taking.ticket.charge(500)
  other.ticket.charge(450)
  taking.ticket.release(1)
  open(admission).ticket.charge(100)
  t.same([taking.reason, other.reason], [undefined, 'OVERLOADED'])
  t.end()
})

await t.test('where no client is waited for, the newcomer is refused and nobody ends', (t) => {
  const admission = new Admission({ maxBytes: 1000 })
  const [busy, waiting, late] = [open(admission), open(admission), open(admission)]
  busy.ticket.charge(900)
  busy.ticket.enter()
  waiting.ticket.charge(50)
  t.throws(() => late.ticket.charge(200), { message: /950 bytes .* 200 more would go over/ })
  t.equal(waiting.reason, undefined, 'its end would not have been enough')
  late.ticket.charge(100)
  t.equal(waiting.reason, 'OVERLOADED')
  late.ticket.enter()
  t.throws(() => admission.open(), { message: /in flight/ }, 'not a byte is left')
  t.end()
})

await t.test('what waits has at most half of the pool, of one client a quarter', (t) => {
  const admission = new Admission({ maxBytes: 1000 })
  const connection = {}
  const [one, two] = [open(admission, connection), open(admission, connection)]
  one.ticket.charge(200)
  two.ticket.charge(60)
  t.match(one.error, { message: /of this client have more than 250 bytes/ })
  const identity = new ClientShare()
  const [three, four] = [open(admission, {}, identity), open(admission, {}, identity)]
  three.ticket.charge(200)
  four.ticket.charge(60)
  t.match(three.error, { message: /of this client have more than 250 bytes/ })
  const rest = [open(admission), open(admission)]
  for (const { ticket } of rest) ticket.charge(240)
  t.match(two.error, { message: /600 bytes .* wait for clients, the bound is 500/ })
  t.match(four.error, { message: /540 bytes .* wait for clients, the bound is 500/ })
  t.same(endedBy(admission), { client: 2, waiting: 2 })
  t.equal(admission.waitingBytes, 480)
  t.end()
})

await t.test('one call alone may have more: no message is too large for its share', (t) => {
  const admission = new Admission({ maxBytes: 1000 })
  const call = open(admission, {}, new ClientShare())
  call.ticket.charge(900)
  t.equal(call.reason, undefined)
  t.throws(() => call.ticket.charge(200), { message: /bound is 1000/ }, 'but not more than all')
  t.end()
})

await t.test('calls in work count in no share', (t) => {
  const admission = new Admission({ maxBytes: 1000 })
  const connection = {}
  const calls = [1, 2, 3].map(() => open(admission, connection))
  for (const { ticket } of calls) {
    ticket.charge(240)
    ticket.enter()
  }
  t.same(
    calls.map(({ reason }) => reason),
    [undefined, undefined, undefined],
  )
  calls[0]?.ticket.leave()
  calls[1]?.ticket.leave()
  t.same(
    calls.map(({ reason }) => reason),
    ['OVERLOADED', undefined, undefined],
    'until answered',
  )
  t.end()
})

await t.test('connections from outside are those of proxies and have no share', (t) => {
  const whole = new Admission({ maxBytes: 1000 })
  const outside = new Admission(outsideShare(whole.bounds), whole)
  const connection = {}
  const calls = [open(outside, connection), open(outside, connection)]
  for (const { ticket } of calls) ticket.charge(180)
  t.same(
    calls.map(({ reason }) => reason),
    [undefined, undefined],
  )
  open(outside, connection).ticket.charge(100)
  t.equal(calls[0]?.reason, 'OVERLOADED', 'but 3/4 of all that may wait')
  t.end()
})

await t.test('a request from outside ends none from inside for the pool', (t) => {
  const whole = new Admission({ maxBytes: 1000, maxWaitingBytes: 1000 })
  const outside = new Admission(outsideShare(whole.bounds), whole)
  const [inner, outer] = [open(whole), open(outside)]
  inner.ticket.charge(700)
  outer.ticket.charge(250)
  t.throws(() => open(outside).ticket.charge(301), { message: /301 more would go over/ })
  t.same([inner.reason, outer.reason], [undefined, undefined])
  open(outside).ticket.charge(100)
  t.same([inner.reason, outer.reason], [undefined, 'OVERLOADED'])
  open(whole).ticket.charge(300)
  t.equal(inner.reason, 'OVERLOADED')
  t.end()
})

await t.test(
  'while half of the pool is in use, slow clients end and streams that wait go on',
  (t) => {
    const clock = createManualClock()
    const admission = new Admission({ maxBytes: 1_000_000, maxWaitingBytes: 900_000 })
    const end = watchRates({ clock, admission, bytesPerSecond: 16_384, windowMs: 10_000 })
    t.teardown(end)
    const [slow, fast, working, idle] = [1, 2, 3, 4].map(() => open(admission))
    const calls = [slow, fast, working, idle]
    for (const call of [slow, fast, working]) call?.ticket.charge(160_000)
    working?.ticket.enter()
    const pass = (seconds: number): void => {
      for (let i = 0; i < seconds; i += 1) {
        if (fast !== undefined) fast.movedBytes += 16_500
        if (slow !== undefined) slow.movedBytes += 1
        clock.advance(1000)
      }
    }
    pass(60)
    t.same(
      calls.map((call) => call?.reason),
      [undefined, undefined, undefined, undefined],
      'there is room',
    )
    const filler = open(admission)
    filler.ticket.charge(100_000)
    filler.ticket.enter()
    pass(9)
    t.equal(slow?.reason, undefined, 'what it did before does not count')
    pass(10)
    t.equal(slow?.reason, 'OVERLOADED')
    t.match(slow?.error, { message: /sends or reads too slowly/ })
    slow?.ticket.close()
    open(admission).ticket.charge(200_000)
    pass(120)
    t.same(
      [fast, working, idle].map((call) => call?.reason),
      [undefined, undefined, undefined],
    )
    t.same(endedBy(admission), { rate: 2 }, 'with the one that filled the pool')
    t.equal(clock.pending, 1, 'one timer for all')
    t.end()
  },
)

await t.test('a call that ends for its own bytes ends no other call', (t) => {
  const admission = new Admission({ maxBytes: 1000, maxWaitingBytes: 1000 })
  const stream = open(admission)
  const reading = stream.ticket.another()
  stream.others.push(reading)
  reading.charge(100)
  const other = open(admission)
  other.ticket.charge(800)
  stream.ticket.enter()
  stream.ticket.charge(300)
  t.equal(stream.reason, 'OVERLOADED')
  t.equal(other.reason, undefined)
  t.equal(admission.bytes, 800)
  t.end()
})

await t.test('a slow call ends once, whatever it waits with', (t) => {
  const clock = createManualClock()
  const admission = new Admission({ maxBytes: 1000, maxWaitingBytes: 900 })
  t.teardown(watchRates({ clock, admission, bytesPerSecond: 16_384, windowMs: 10_000 }))
  const call = open(admission)
  const unread = call.ticket.another()
  call.others.push(unread)
  call.ticket.charge(300)
  unread.charge(300)
  clock.advance(60_000)
  t.equal(call.reason, 'OVERLOADED')
  t.same(endedBy(admission), { rate: 1 })
  t.end()
})

await t.test(
  'the call of a client that has waited longest is found at once, among any number',
  (t) => {
    const cpuMs = (others: number): number => {
      const admission = new Admission({ maxBytes: 4_000_000, maxWaitingBytes: 4_000_000 })
      for (let i = 0; i < others; i += 1) open(admission).ticket.charge(1)
      const connection = {}
      const before = process.threadCpuUsage()
      for (let i = 0; i < 2000; i += 1) open(admission, connection).ticket.charge(10_000)
      const { user, system } = process.threadCpuUsage(before)
      t.same(endedBy(admission), { client: 1900 })
      return (user + system) / 1000
    }
    const [few, many] = [cpuMs(100), cpuMs(100_000)]
    // A walk past the others takes seconds.
    t.ok(many < 6 * few + 100, `${few} and ${many} ms of processor time`)
    t.end()
  },
)

await t.test(
  'whatever calls do, no bound is passed, and no call ends that waits for us',
  async () => {
    const act = fc.record({
      call: fc.nat(11),
      act: fc.constantFrom(
        'charge',
        'charge',
        'release',
        'enter',
        'leave',
        'waits',
        'ours',
        'close',
      ),
      bytes: fc.integer({ min: 1, max: 150 }),
    })
    fc.assert(
      fc.property(fc.array(act, { maxLength: 120 }), (acts) => {
        const whole = new Admission({ maxBytes: 800 })
        const outside = new Admission(outsideShare(whole.bounds), whole)
        const clients = [{}, {}, {}]
        const identities = [new ClientShare(), new ClientShare(), undefined]
        const make = (i: number): Call =>
          open(i % 2 === 0 ? whole : outside, clients[i % 3], identities[(i >> 1) % 3])
        const calls = Array.from({ length: 12 }, (_, i) => make(i))
        for (const { call: at, act: what, bytes } of acts) {
          const call = calls[at]
          if (call === undefined) continue
          const ours = calls.filter(
            ({ ticket }) => ticket.waitingBytes === 0 && ticket !== call.ticket,
          )
          const ended = new Set(calls.filter(({ error }) => error !== undefined))
          actOn(call.ticket, what, bytes)
          for (const each of ours)
            ok(each.error === undefined || ended.has(each), 'it waited for us')
          for (const admission of [whole, outside]) check(admission, calls)
          checkLines(whole, outside, calls)
        }
        for (const { ticket } of calls) ticket.close()
        deepEqual(
          [whole.bytes, whole.waitingBytes, outside.bytes, outside.waitingBytes],
          [0, 0, 0, 0],
        )
        deepEqual([...whole.line], [])
        deepEqual(
          identities.map((share) => share?.waitingBytes ?? 0),
          [0, 0, 0],
        )
      }),
      { numRuns: 500 },
    )
  },
)

function check(admission: Admission, calls: readonly Call[]): void {
  const { bytes, waitingBytes, bounds } = admission
  const inLine = new Set(admission.line)
  const waiting = calls.filter(({ ticket }) => inLine.has(ticket))
  deepEqual(
    waiting.filter(({ ticket }) => ticket.waitingBytes === 0),
    [],
  )
  const sum = waiting.reduce((all, { ticket }) => all + ticket.waitingBytes, 0)
  deepEqual(waitingBytes, sum)
  ok(bytes <= bounds.maxBytes && sum <= bytes)
  ok(sum <= bounds.maxWaitingBytes || waiting.length === 1, `${sum} bytes wait`)
  for (const { ticket } of waiting) {
    const { connection } = ticket
    if (connection === undefined) continue
    const same = waiting.filter((other) => other.ticket.connection === connection)
    ok(connection.waitingBytes <= bounds.maxWaitingBytesPerClient || same.length === 1)
  }
}

/** The line of each pool and client is that part of all that wait which is its own, in the same order. */
function checkLines(whole: Admission, outside: Admission, calls: readonly Call[]): void {
  const all = [...whole.line]
  const outer = new Set(calls.flatMap(({ ticket }, i) => (i % 2 === 0 ? [] : [ticket])))
  deepEqual(
    [...outside.line],
    all.filter((ticket) => outer.has(ticket)),
  )
  for (const { ticket } of calls) {
    for (const key of ['connection', 'identity'] as const) {
      const share = ticket[key]
      if (share === undefined) continue
      deepEqual(
        [...share.line],
        all.filter((other) => other[key] === share),
      )
    }
  }
}
