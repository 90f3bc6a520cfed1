import { deepStrictEqual, notStrictEqual, strictEqual } from 'node:assert/strict'
import { ServeError } from '@tutti/errors'
import type { Heartbeat } from '@tutti/protocol'
import * as fc from 'fast-check'
import t from 'tap'
import type { Novelty } from './membership.ts'
import { type MemberListener, MergedMembers } from './merged-members.ts'

const error = new ServeError('STEP_UNAVAILABLE', 'gone')

function heartbeat(member: string, o: Partial<Heartbeat> = {}): Heartbeat {
  return {
    member,
    role: 'step',
    sequence: 1,
    description: 'd',
    inFlight: 0,
    queued: 0,
    freeSlots: 1,
    freeBytes: 1,
    draining: false,
    transports: ['nats'],
    revisions: [],
    protocol: 1,
    ...o,
  }
}

/** Two accesses that are up, and what the listener was told. */
function open() {
  const said: string[] = []
  const merged = new MergedMembers(
    {
      heard: ({ member, inFlight }, what) => void said.push(`${member} ${what} ${inFlight}`),
      suspected: (member, isSuspect) =>
        void said.push(`${member} ${isSuspect ? 'suspected' : 'recovered'}`),
      gone: (member, _error, endCalls) => {
        said.push(`${member} gone`)
        endCalls()
      },
    },
    2,
  )
  const [primary, former] = [merged.access(0), merged.access(1)]
  for (const access of [primary, former]) access.linked(true)
  const endCalls = (): void => void said.push('calls ended')
  const take = (): string[] => said.splice(0)
  return { merged, primary, former, endCalls, take }
}

await t.test('a member on both is one, heard and called over the primary access', async (t) => {
  const { merged, primary, former, endCalls, take } = open()
  t.equal(merged.via('a'), 0, 'one that is not known')
  former.heard(heartbeat('a', { inFlight: 1 }), 'new')
  t.same([take(), merged.via('a')], [['a new 1'], 1])
  primary.heard(heartbeat('a', { inFlight: 2 }), 'new')
  t.same([take(), merged.via('a')], [['a load 2'], 0], 'the same member with another load')
  former.heard(heartbeat('a', { inFlight: 3, description: 'older' }), 'changed')
  t.same(take(), [], 'what it says over the other access is not asked for')
  primary.heard(heartbeat('a', { inFlight: 4, description: 'newer' }), 'changed')
  t.same(take(), ['a changed 4'])
  t.same(merged.members('step'), ['a'])
  t.same(merged.members('router'), [])
  primary.gone('a', error, endCalls)
  t.same([take(), merged.via('a')], [['a changed 3', 'calls ended'], 1], 'only its calls there end')
  former.gone('a', error, endCalls)
  t.same(take(), ['a gone', 'calls ended'])
  t.same(merged.members('step'), [])
})

await t.test('it is suspect if it cannot be reached over any access', async (t) => {
  const { merged, primary, former, take } = open()
  primary.heard(heartbeat('a'), 'new')
  former.heard(heartbeat('a'), 'new')
  primary.heard(heartbeat('b'), 'new')
  former.heard(heartbeat('c'), 'new')
  take()
  primary.suspected('a', true)
  t.same([take(), merged.via('a')], [['a load 0'], 1])
  former.suspected('a', true)
  t.same([take(), merged.via('a')], [['a load 0', 'a suspected'], 0])
  former.suspected('a', false)
  t.same([take(), merged.via('a')], [['a load 0', 'a recovered'], 1])
  primary.suspected('a', false)
  take()
  former.linked(false)
  t.same(take(), ['c suspected'], 'those on the former only')
  former.linked(true)
  t.same(take(), ['c recovered'])
  primary.linked(false)
  t.same([take(), merged.via('a')], [['a load 0', 'b suspected'], 1])
  former.linked(false)
  t.same(
    [take(), merged.via('a')],
    [['a load 0', 'b recovered'], 0],
    'without any broker a call says so itself',
  )
  primary.suspected('nobody', true)
  t.same(take(), [])
})

await t.test('what was heard over a broker that is away keeps no member', async (t) => {
  const { merged, primary, former, endCalls, take } = open()
  primary.heard(heartbeat('a'), 'new')
  former.heard(heartbeat('a'), 'new')
  former.linked(false)
  take()
  primary.gone('a', error, endCalls)
  t.same([take(), merged.members('step')], [['a gone', 'calls ended'], []])
  former.linked(true)
  former.heard(heartbeat('a', { inFlight: 2 }), 'load')
  t.same([take(), merged.via('a')], [['a new 2'], 1], 'it is there after all')
  former.linked(false)
  primary.heard(heartbeat('a'), 'new')
  primary.gone('a', error, endCalls)
  take()
  former.gone('a', error, endCalls)
  t.same(take(), ['calls ended'], 'it has gone before')
})

const MEMBERS = ['a', 'b']
const event: fc.Arbitrary<Event> = fc.record({
  access: fc.nat({ max: 1 }),
  member: fc.constantFrom(...MEMBERS),
  kind: fc.constantFrom('heard', 'suspect', 'recover', 'gone', 'up', 'down'),
  load: fc.nat({ max: 3 }),
})

/** The rules, read plainly: what each access knows, and what follows of it. */
class Expected {
  readonly isUp = [true, true]
  /** By access and member. */
  readonly known = [new Map<string, Told>(), new Map<string, Told>()]

  via(member: string): number {
    const at = this.known.map((access) => access.get(member))
    const good = at.findIndex((state, i) => state?.isSuspect === false && this.isUp[i] === true)
    return good >= 0 ? good : at.findIndex((state) => state !== undefined)
  }

  gone(index: number, member: string): void {
    this.known[index]?.delete(member)
    const isElsewhere = this.known.some((one, i) => one.has(member) && this.isUp[i] === true)
    if (!isElsewhere) for (const one of this.known) one.delete(member)
  }

  told(member: string): Told | undefined {
    const via = this.via(member)
    const state = this.known[via]?.get(member)
    const isBeyond = this.isUp[via] === false && this.isUp.includes(true)
    return state && { ...state, isSuspect: state.isSuspect || isBeyond }
  }
}

interface Told {
  load: number
  isSuspect: boolean
}

/** Holds what it was told, and fails on what tells it nothing. */
class Listening implements MemberListener {
  readonly told = new Map<string, Told>()

  heard({ member, inFlight }: Heartbeat, what: Novelty): void {
    notStrictEqual(what === 'new', this.told.has(member))
    const isSuspect = this.told.get(member)?.isSuspect ?? false
    this.told.set(member, { load: inFlight, isSuspect })
  }

  suspected(member: string, isSuspect: boolean): void {
    const one = this.told.get(member)
    strictEqual(one?.isSuspect, !isSuspect)
    one.isSuspect = isSuspect
  }

  gone(member: string, _error: ServeError, endCalls: () => void): void {
    strictEqual(this.told.delete(member), true)
    endCalls()
  }
}

interface Event {
  readonly access: number
  readonly member: string
  readonly kind: 'heard' | 'suspect' | 'recover' | 'gone' | 'up' | 'down'
  readonly load: number
}

/** @returns how many calls ended that should not have, or less than 0. */
function play(
  { access: index, member, kind, load }: Event,
  to: MergedMembers,
  is: Expected,
): number {
  const access = to.access(index)
  const known = is.known[index]
  const before = known?.get(member)
  let ended = 0
  if (kind === 'up' || kind === 'down') {
    is.isUp[index] = kind === 'up'
    access.linked(kind === 'up')
  } else if (kind === 'heard') {
    known?.set(member, { load, isSuspect: before?.isSuspect ?? false })
    access.heard(heartbeat(member, { inFlight: load }), before === undefined ? 'new' : 'load')
  } else if (kind === 'gone') {
    is.gone(index, member)
    access.gone(member, error, () => void (ended += 1))
    return ended - 1
  } else if (before === undefined) {
    return 0
  } else {
    before.isSuspect = kind === 'suspect'
    access.suspected(member, kind === 'suspect')
  }
  return ended
}

await t.test('after any events the listener knows what the accesses know', async (t) => {
  const property = fc.property(fc.array(event, { maxLength: 40 }), (events) => {
    const is = new Expected()
    const listener = new Listening()
    const merged = new MergedMembers(listener, 2)
    for (const access of [0, 1]) merged.access(access).linked(true)
    for (const one of events) {
      strictEqual(play(one, merged, is), 0)
      for (const member of MEMBERS) {
        deepStrictEqual(listener.told.get(member), is.told(member))
        if (listener.told.has(member)) strictEqual(merged.via(member), is.via(member))
      }
    }
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 300 }))
})
