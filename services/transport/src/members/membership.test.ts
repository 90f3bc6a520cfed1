import type { Heartbeat, SentHeartbeat } from '@tutti/protocol'
import * as fc from 'fast-check'
import t from 'tap'
import { ENDPOINT_DEFAULTS } from '../endpoint-settings.ts'
import { TICK_MS } from './listened-time.ts'
import { Membership } from './membership.ts'

function heartbeat(member: string, sequence: number, o: Partial<Heartbeat> = {}): Heartbeat {
  return {
    member,
    role: 'step',
    sequence,
    description: 'd',
    inFlight: 0,
    queued: 0,
    freeSlots: 1,
    freeBytes: 1,
    unaskedBytes: 1,
    draining: false,
    transports: ['nats'],
    revisions: [],
    protocol: 1,
    ...o,
  }
}

/** As one of `a` with many revisions mostly is. */
function short(sequence: number, o: Partial<SentHeartbeat> = {}): SentHeartbeat {
  return { ...heartbeat('a', sequence), revisions: undefined, ...o }
}

function announcing(member: string, sequence: number, count: number): Heartbeat {
  return heartbeat(member, sequence, {
    revisions: Array.from({ length: count }, (_, i) => ['m', i + 1, 'r'] as const),
  })
}

function farewell(member: string, sequence: number): Heartbeat {
  return heartbeat(member, sequence, { draining: true, freeSlots: 0, transports: [] })
}

function open(settings = ENDPOINT_DEFAULTS) {
  const said: string[] = []
  const members = new Membership(settings, {
    heard: ({ member }, what) => void said.push(`${member} ${what}`),
    suspected: (member) => void said.push(`${member} suspected`),
    recovered: (member) => void said.push(`${member} recovered`),
    gone: (member, error, how) => void said.push(`${member} ${how}: ${error.reason}`),
  })
  /** Lets time pass with ticks as the real clockwork has them. */
  const pass = (from: number, to: number): void => {
    for (let now = from; now <= to; now += TICK_MS) members.tick(now)
  }
  return { members, said, pass }
}

await t.test('silence makes suspect, longer silence dead', async (t) => {
  const { members, said, pass } = open()
  members.heartbeat(heartbeat('a', 1))
  pass(0, 800)
  t.same(said, ['a new'])
  pass(900, 900)
  t.same(said, ['a new', 'a suspected'])
  pass(1000, 2900)
  t.same(members.members('step'), ['a'])
  pass(3000, 3000)
  t.same(said, ['a new', 'a suspected', 'a dead: STEP_UNAVAILABLE'])
  t.same(members.members('step'), [])
  members.heartbeat(heartbeat('a', 2))
  t.equal(said.at(-1), 'a new', 'one that comes back is new')
})

await t.test('a suspect recovers with any sign of life', async (t) => {
  const { members, said, pass } = open()
  members.heartbeat(heartbeat('a', 1))
  pass(0, 900)
  members.answered('a')
  t.equal(said.at(-1), 'a recovered')
  pass(1000, 2000)
  t.equal(said.at(-1), 'a suspected')
  members.heartbeat(heartbeat('a', 2))
  t.equal(said.at(-2), 'a recovered')
})

await t.test('no responder is death at once, a farewell too', async (t) => {
  const { members, said } = open()
  members.heartbeat(heartbeat('a', 1))
  members.heartbeat(heartbeat('b', 1))
  members.unreachable('a')
  members.unreachable('missing')
  members.heartbeat(farewell('b', 2))
  members.heartbeat(farewell('unknown', 2))
  t.same(said.slice(2), ['a dead: STEP_UNAVAILABLE', 'b left: STEP_UNAVAILABLE'])
})

await t.test(
  'no member is suspected while the broker is away, nor for a grace after',
  async (t) => {
    const { members, said, pass } = open()
    members.heartbeat(heartbeat('a', 1))
    members.freeze()
    pass(0, 10_000)
    members.unreachable('a')
    members.thaw()
    pass(10_100, 10_900)
    t.same(said, ['a new'])
    pass(11_000, 13_000)
    t.same(said, ['a new', 'a suspected', 'a dead: STEP_UNAVAILABLE'])
  },
)

await t.test('a new heartbeat is reported; old and repeated ones change nothing', async (t) => {
  const { members, said } = open()
  members.heartbeat(heartbeat('a', 5))
  members.heartbeat(heartbeat('a', 6))
  members.heartbeat(heartbeat('a', 6, { description: 'other' }))
  members.heartbeat(heartbeat('a', 4, { description: 'other' }))
  members.heartbeat(heartbeat('a', 7, { description: 'other' }))
  members.heartbeat(heartbeat('a', 8, { description: 'other', draining: true }))
  t.same(said, ['a new', 'a load', 'a changed', 'a changed'])
  // A forged one must not hold for good.
  members.heartbeat(announcing('a', 9, 2))
  members.heartbeat(announcing('a', 10, 1))
  members.heartbeat({ ...announcing('a', 11, 1), role: 'router' })
  members.heartbeat(announcing('a', 12, 1))
  members.heartbeat(announcing('a', 13, 1))
  t.same(said.slice(4), [...Array(4).fill('a changed'), 'a load'])
})

await t.test('a heartbeat without revisions leaves them as they were', async (t) => {
  const { members, said, pass } = open()
  members.heartbeat(short(1))
  t.same([said, members.members('step')], [[], []], 'what it serves is not known yet')
  members.heartbeat(announcing('a', 2, 3))
  members.heartbeat(short(3))
  members.heartbeat(short(4, { draining: true, inFlight: 7 }))
  t.same(said, ['a new', 'a load', 'a changed'])
  t.match(members.latest('a'), { inFlight: 7, draining: true, revisions: { length: 3 } })
  pass(0, 800)
  members.heartbeat(short(5, { draining: true }))
  pass(900, 1500)
  t.notOk(said.includes('a suspected'), 'it is a sign of life')
  members.heartbeat(short(6, { draining: true, freeSlots: 0, transports: [] }))
  t.same(members.members('step'), ['a'], 'and no farewell')
})

await t.test('a forged large number does not shut out the member', async (t) => {
  const { members, said } = open()
  members.heartbeat(heartbeat('a', 7))
  members.heartbeat(heartbeat('a', Number.MAX_SAFE_INTEGER, { draining: true }))
  members.heartbeat(heartbeat('a', 8))
  t.same(said, ['a new', 'a changed', 'a changed'])
})

await t.test('a caller that was never heard is expected to be, and dies of silence', async (t) => {
  const { members, said, pass } = open()
  members.expect('caller')
  t.same(members.members('router'), [], 'its role is not known yet')
  pass(0, 3000)
  t.same(said, ['caller suspected', 'caller dead: STEP_UNAVAILABLE'])
})

await t.test('however many members somebody invents, the number is bounded', async (t) => {
  const { members } = open({ ...ENDPOINT_DEFAULTS, maxMembers: 3 })
  fc.assert(
    fc.property(fc.string(), fc.nat(), (member, sequence) => {
      members.heartbeat(heartbeat(member, sequence))
      members.expect(`${member}!`)
      return members.members('step').length <= 3
    }),
  )
  t.notOk(members.heartbeat(heartbeat('one more', 1)))
})

await t.test(
  'however much members announce, it is bounded, and what goes frees memory',
  async (t) => {
    const { members } = open({ ...ENDPOINT_DEFAULTS, maxRevisions: 5 })
    t.ok(members.heartbeat(announcing('a', 1, 3)))
    t.notOk(members.heartbeat(announcing('b', 1, 3)), 'too much of one that is not known')
    t.same(members.members('step'), ['a'])
    t.ok(members.heartbeat(announcing('b', 2, 2)))
    t.notOk(members.heartbeat(announcing('a', 2, 4)), 'too much of one that is known')
    t.equal(members.latest('a')?.sequence, 1, 'what it said before holds')
    t.ok(members.heartbeat(announcing('a', 3, 1)))
    t.ok(members.heartbeat(announcing('b', 3, 4)))
    members.heartbeat(farewell('b', 4))
    t.ok(members.heartbeat(announcing('c', 1, 4)))
    members.unreachable('a')
    members.unreachable('c')
    t.ok(members.heartbeat(announcing('d', 1, 5)))
  },
)
