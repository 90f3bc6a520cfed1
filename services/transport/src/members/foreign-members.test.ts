import type { Heartbeat } from '@tutti/protocol'
import t from 'tap'
import { ForeignMembers } from './foreign-members.ts'

function heartbeat(member: string, models: readonly string[]): Heartbeat {
  return {
    member,
    role: 'step',
    sequence: 0,
    description: '',
    inFlight: 0,
    queued: 0,
    freeSlots: 0,
    freeBytes: 0,
    unaskedBytes: 0,
    draining: false,
    transports: [],
    revisions: models.flatMap((model) => [
      [model, 1, 'a'],
      [model, 2, 'b'],
    ]),
    protocol: 2,
    newestProtocol: 3,
  }
}

await t.test('a member is known while it is heard, and new once', async (t) => {
  const foreign = new ForeignMembers(3000)
  const expected = {
    member: 'a',
    role: 'step',
    oldestProtocol: 2,
    newestProtocol: 3,
    models: ['m'],
  }
  t.same(foreign.heard(0, heartbeat('a', ['m'])), expected)
  t.equal(foreign.heard(250, heartbeat('a', ['m', 'n'])), undefined)
  t.equal(foreign.heard(250, { ...heartbeat('a', []), revisions: undefined }), undefined)
  t.same(foreign.all, [{ ...expected, models: ['m', 'n'] }], 'what it says last')
  foreign.tick(3249)
  t.equal(foreign.all.length, 1)
  foreign.tick(3250)
  t.same(foreign.all, [])
  const { newestProtocol, ...one } = heartbeat('a', [])
  t.equal(newestProtocol, 3)
  t.match(foreign.heard(4000, one), { oldestProtocol: 2, newestProtocol: 2 }, 'new again')
})

function names(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `model${i}`)
}

await t.test('neither many members nor many models are remembered', async (t) => {
  const foreign = new ForeignMembers(3000)
  for (let i = 0; i < 300; i++) foreign.heard(0, heartbeat(`m${i}`, []))
  t.equal(foreign.all.length, 256)
  foreign.tick(3000)
  t.ok(foreign.heard(3000, heartbeat('a', names(4000))))
  t.equal(foreign.heard(3000, heartbeat('b', names(97))), undefined)
  t.ok(foreign.heard(3000, heartbeat('b', names(96))))
})
