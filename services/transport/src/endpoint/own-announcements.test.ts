import { createLogger, silentLogger } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { buildSubjects, decodeHeartbeat } from '@tutti/protocol'
import t from 'tap'
import { TransportEvents } from '../log-events.ts'
import { OwnAnnouncements, type OwnState } from './own-announcements.ts'

function state(revisions: number): OwnState {
  return {
    description: 'd',
    inFlight: 0,
    queued: 0,
    freeSlots: 1,
    freeBytes: 1,
    unaskedBytes: 1,
    draining: false,
    transports: ['nats'],
    revisions: Array.from({ length: revisions }, (_, i) => ['m', i + 1, 'r'] as const),
  }
}

/** `said` is subject and number of revisions of each heartbeat since it was asked last; undefined if it names none. */
function open(events = new TransportEvents(silentLogger)) {
  const clock = createManualClock()
  const sent: (readonly [string, number | undefined])[] = []
  const announcements = new OwnAnnouncements({
    self: 's',
    role: 'step',
    subjects: buildSubjects({ prefix: 'p', repository: 'r' }),
    clock,
    events,
    link: {
      maxPayload: 1e6,
      publish: (subject, bytes) => {
        sent.push([subject, decodeHeartbeat(bytes).revisions?.length])
        return true
      },
    },
  })
  const passes = (ms: number, act: () => void): void => {
    for (let passed = 0; passed < ms; passed += 250) {
      act()
      clock.advance(250)
    }
  }
  return { announcements, clock, passes, said: () => sent.splice(0) }
}

await t.test(
  'few revisions are always said, many when they change and every two seconds',
  async (t) => {
    const { announcements, said } = open()
    const counts = (): (number | undefined)[] => said().map(([, count]) => count)
    for (let i = 0; i < 3; i++) announcements.send(state(8))
    t.same(counts(), [8, 8, 8])
    for (let i = 0; i < 10; i++) announcements.send(state(9))
    t.same(counts(), [9, ...Array(7).fill(undefined), 9, undefined])
    announcements.send(state(10))
    t.same(counts(), [10])
    announcements.sayAll()
    announcements.send(state(10))
    announcements.send(state(10))
    t.same(counts(), [10, undefined], 'a newcomer hears all')
  },
)

await t.test(
  'a failure lasts until an announcement succeeds, and is logged at a bounded rate',
  async (t) => {
    const lines: string[] = []
    const destination = { write: (line: string) => lines.push(line) }
    const log = createLogger({ level: 'info', name: 'test', destination })
    const { announcements, clock, passes } = open(new TransportEvents(log))
    const tooMuch = state(5000)
    announcements.send(state(1))
    t.equal(announcements.failure, undefined)
    clock.advance(1000)
    passes(60_000, () => announcements.send(tooMuch))
    t.match(announcements.failure, { reason: 'MESSAGE_TOO_LARGE' })
    t.equal(lines.length, 2, 'once in half a minute')
    t.match(lines[0], /"reason":"MESSAGE_TOO_LARGE"/)
    announcements.send(state(1))
    announcements.send(state(1))
    t.equal(announcements.failure, undefined)
    announcements.send(tooMuch)
    t.same(
      lines.map((line) => JSON.parse(line).message),
      [
        'heartbeat cannot be sent, others do not see what is served here',
        'heartbeat cannot be sent, others do not see what is served here',
        'heartbeats are sent again',
        'heartbeat cannot be sent, others do not see what is served here',
      ],
    )
  },
)
