// needs: nats
import { queryObjects } from 'node:v8'
import { systemClock } from '@tutti/chassis'
import { startNatsServer } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { brokerAt, WITH_NATS } from '../testing/endpoints.ts'
import { type BrokerConnection, openBrokerConnection } from './nats-connection.ts'

const FLUSHES = 1000

/** A connection to a broker of its own. */
async function open(t: Test): Promise<BrokerConnection> {
  const server = await startNatsServer()
  t.teardown(() => server.stop())
  const connected = Promise.withResolvers<void>()
  const connection = openBrokerConnection({
    broker: brokerAt(server.url),
    name: 'test',
    clock: systemClock,
    settings: { reconnectMs: 100, connectMs: 5000, keepAliveMs: 10_000 },
    listener: {
      connected: () => connected.resolve(),
      disconnected: () => {},
      connectFailed: () => {},
      complained: () => {},
      handlerFailed: (error) => t.fail(error.message),
    },
  })
  t.teardown(() => connection.close(0))
  await connected.promise
  return connection
}

async function flushOften(connection: BrokerConnection): Promise<void> {
  for (let i = 0; i < FLUSHES; i += 1) await connection.flush()
}

await t.test('a flush that is answered leaves nothing behind', WITH_NATS, async (t) => {
  const connection = await open(t)
  await flushOften(connection)
  const before = queryObjects(Promise, { format: 'count' })
  await flushOften(connection)
  const left = queryObjects(Promise, { format: 'count' }) - before
  t.ok(left < FLUSHES / 2, `${left} promises of ${FLUSHES} flushes are left`)
})

await t.test('a flush fails when the connection is given up or closed', WITH_NATS, async (t) => {
  const lost = { reason: 'STEP_UNAVAILABLE', message: /the broker went away/ }
  const ends = {
    'given up': (connection) => connection.abandon('it is late'),
    closed: (connection) => void connection.close(0),
  } as const satisfies Record<string, (connection: BrokerConnection) => void>
  for (const [way, end] of Object.entries(ends)) {
    const connection = await open(t)
    // What the broker does not answer before the connection ends.
    const flushed = Promise.all([connection.flush(), connection.flush()])
    end(connection)
    await t.rejects(flushed, lost, way)
  }
})
