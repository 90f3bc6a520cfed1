// needs: nats
import { createLogger } from '@tutti/chassis'
import { startNatsServer } from '@tutti/chassis/testing'
import t from 'tap'
import {
  brokerAt,
  echo,
  openTestRouter,
  openTestStep,
  SERVED,
  until,
  WITH_NATS,
} from './testing/endpoints.ts'

await t.test(
  'a line names this member and the other one, each by a field of its own',
  WITH_NATS,
  async (t) => {
    const server = await startNatsServer()
    t.teardown(() => server.stop())
    const lines: string[] = []
    const destination = { write: (line: string) => lines.push(line) }
    const log = createLogger({ level: 'info', name: 'test', destination })
    const router = await openTestRouter(t, brokerAt(server.url), 'router', { log })
    await openTestStep(t, brokerAt(server.url), 'step', echo)
    await until(() => router.directory.isServed(SERVED))
    const appeared = lines.find((line) => line.includes('member appeared')) ?? ''
    t.match(JSON.parse(appeared), { self: 'router', member: 'step', role: 'step' })
    t.equal(appeared.split('"member":').length, 2, 'no name comes twice')
  },
)
