// needs: nats
import { queryObjects } from 'node:v8'
import { systemClock } from '@tutti/chassis'
import { startNatsServer } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { brokerAt, until, WITH_NATS } from '../testing/endpoints.ts'
import { type BrokerConnection, openBrokerConnection } from './nats-connection.ts'
import type { BrokerMessage } from './whole-messages.ts'

const FLUSHES = 1000

async function openServer(t: Test): Promise<string> {
  const server = await startNatsServer()
  t.teardown(() => server.stop())
  return server.url
}

async function open(t: Test, url: string): Promise<BrokerConnection> {
  const connected = Promise.withResolvers<void>()
  const connection = openBrokerConnection({
    broker: brokerAt(url),
    name: 'test',
    clock: systemClock,
    settings: { connectMs: 5000 },
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
  const connection = await open(t, await openServer(t))
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
    const connection = await open(t, await openServer(t))
    // Flushes that the broker does not answer before the connection ends.
    const flushed = Promise.all([connection.flush(), connection.flush()])
    end(connection)
    await t.rejects(flushed, lost, way)
  }
})

await t.test(
  'names of all letters, empty messages and replies without a responder',
  WITH_NATS,
  async (t) => {
    const url = await openServer(t)
    const [connection, other] = [await open(t, url), await open(t, url)]
    const came: unknown[] = []
    const take = (message: BrokerMessage): void => {
      const { bytes, ...rest } = message
      came.push({ ...rest, text: Buffer.from(bytes).toString() })
    }
    connection.subscribe('größe.中', take)
    await connection.flush()
    other.publish('größe.中', Buffer.from('é'), 'antwort.中')
    other.publish('größe.中', new Uint8Array())
    await until(() => came.length === 2)
    connection.subscribe('inbox.>', take)
    connection.publish('missing', Buffer.from('x'), 'inbox.7')
    await until(() => came.length === 3)
    t.same(came, [
      { subject: 'größe.中', reply: 'antwort.中', isNoResponder: false, text: 'é' },
      { subject: 'größe.中', reply: undefined, isNoResponder: false, text: '' },
      { subject: 'inbox.7', reply: undefined, isNoResponder: true, text: '' },
    ])
  },
)
