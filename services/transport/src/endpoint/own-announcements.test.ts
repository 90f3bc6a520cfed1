import { createLogger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import t from 'tap'
import { TransportEvents } from '../log-events.ts'
import { OwnAnnouncements } from './own-announcements.ts'

await t.test(
  'a failure lasts until an announcement succeeds, and is logged at a bounded rate',
  async (t) => {
    const lines: string[] = []
    const destination = { write: (line: string) => lines.push(line) }
    const log = createLogger({ level: 'info', name: 'test', destination })
    const announcements = new OwnAnnouncements(new TransportEvents(log))
    const error = new ServeError('MESSAGE_TOO_LARGE', 'too much')
    announcements.succeeded()
    t.equal(announcements.failure, undefined)
    for (let now = 1000; now < 61_000; now += 250) announcements.failed(now, error)
    t.equal(announcements.failure, error)
    t.equal(lines.length, 2, 'once in half a minute')
    t.match(lines[0], /"reason":"MESSAGE_TOO_LARGE"/)
    announcements.succeeded()
    announcements.succeeded()
    t.equal(announcements.failure, undefined)
    announcements.failed(61_000, error)
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
