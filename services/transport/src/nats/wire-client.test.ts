import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { until } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import type { BrokerOptions } from '../endpoints.ts'
import { openWireClient, type WireClient } from './wire-client.ts'

/** Signs in without anything. */
const BROKER: BrokerOptions = { servers: [], prefix: 'tutti', repository: 'default' }
const INFO = `INFO ${JSON.stringify({ max_payload: 100_000 })}\r\n`

/** A server that says what a test wants, and all that it was told. */
async function openFake(t: Test, greeting = INFO, answer = 'PONG\r\n') {
  const sockets: Socket[] = []
  let told = ''
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      told += bytes.toString('latin1')
      if (bytes.includes('PING\r\n')) socket.write(answer)
    })
    socket.write(greeting)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const complaints: string[] = []
  const open = (): Promise<WireClient> =>
    openWireClient({
      server: `nats://127.0.0.1:${port}`,
      broker: BROKER,
      name: 'test',
      settings: { connectMs: 300 },
      readBytes: 4096,
      complained: (what) => complaints.push(what),
      guard: (act) => act(),
    })
  return {
    open,
    complaints,
    told: () => told,
    say: (text: string) => sockets[0]?.write(text),
    pause: () => sockets[0]?.pause(),
    end: () => sockets[0]?.destroy(),
  }
}

await t.test('a connection that cannot be is given up at once, and says why', async (t) => {
  const tls = `INFO ${JSON.stringify({ max_payload: 1, tls_required: true })}\r\nPING\r\n`
  const cases: readonly (readonly [string, string, RegExp])[] = [
    ['SSH-2.0-OpenSSH\r\n', '', /what answers is no NATS server/],
    ['INFO {}\r\n', '', /its INFO has no max_payload/],
    ['INFO {\r\n', '', /its INFO is no JSON/],
    [tls, '', /bytes follow its INFO before TLS/],
    ['', '', /timeout/],
    [INFO, "-ERR 'Authorization Violation'\r\n", /Authorization Violation/],
    [INFO, "-ERR 'maximum connections exceeded'\r\n", /maximum connections exceeded/],
  ]
  for (const [greeting, answer, message] of cases) {
    const fake = await openFake(t, greeting, answer)
    const failed = t.rejects(fake.open(), { message })
    if (answer !== '') {
      await until('the other end is so far', () => fake.told().includes('PING'))
      setImmediate(() => fake.end())
    }
    await failed
  }
})

await t.test('damage ends an open connection with its reason', async (t) => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ['MSG a 7 1\r\n', /a message is for the unknown subscription 7/],
    ['MSG a 1 100001\r\n', /a message has 100001 bytes, want 0 to 100000/],
    ['garbage\r\n', /a line is none of a NATS server/],
    ["-ERR 'Stale Connection'\r\n", /Stale Connection/],
    ['', /the broker closed it/],
  ]
  for (const [text, why] of cases) {
    const fake = await openFake(t)
    const client = await fake.open()
    client.subscribe('a', () => undefined)
    fake.say(text)
    if (why.source.includes('Stale'))
      await until('the other end is so far', () => fake.complaints.length > 0)
    if (text === '' || text.startsWith('-ERR')) fake.end()
    t.match(await client.closed, why)
    t.ok(client.isClosed)
  }
})

await t.test(
  'what is refused without an end is told, and what ends later has its own reason',
  async (t) => {
    const fake = await openFake(t)
    const client = await fake.open()
    fake.say('PING\r\n')
    await until('the other end is so far', () => fake.told().includes('PONG'))
    const refused = 'Permissions Violation for Publish to "x"'
    fake.say(`-ERR '${refused}'\r\n${INFO.replace('}', ',"ldm":true}')}`)
    await until('the other end is so far', () => fake.complaints.length === 2)
    t.same(fake.complaints, [refused, 'ldm'])
    fake.end()
    t.match(await client.closed, /the broker closed it/)
  },
)

await t.test(
  'lent memory is given back when it is written, and when the connection is lost',
  async (t) => {
    const fake = await openFake(t)
    const client = await fake.open()
    let written = 0
    const send = (size: number): void => {
      const message = { subject: 's', head: Buffer.from('head'), bytes: Buffer.alloc(size, 'x') }
      client.publish({ ...message, written: () => (written += 1) })
    }
    send(3)
    send(0)
    await until('the other end is so far', () => written === 2)
    await until('the other end is so far', () =>
      fake.told().endsWith('PUB s 7\r\nheadxxx\r\nPUB s 4\r\nhead\r\n'),
    )
    fake.pause()
    for (let i = 0; i < 200; i++) send(100_000)
    await new Promise((resolve) => setImmediate(resolve))
    t.ok(written < 202, 'the socket cannot take all of it')
    client.destroy()
    await client.closed
    await until('the other end is so far', () => written === 202)
  },
)

await t.test('a subscription that is over drops what is on its way', async (t) => {
  const fake = await openFake(t)
  const client = await fake.open()
  const came: string[] = []
  const end = client.subscribe('a', (head) => {
    came.push(Buffer.from(head).toString())
    return undefined
  })
  fake.say('MSG a 1 2\r\nok\r\n')
  await until('the other end is so far', () => came.length === 1)
  end()
  fake.say('MSG a 1 2\r\nno\r\nPING\r\n')
  await until('the other end is so far', () => fake.told().includes('UNSUB 1\r\nPONG'))
  t.same(came, ['ok'])
})

await t.test('a close does not wait for a broker that is gone', async (t) => {
  const fake = await openFake(t)
  const client = await fake.open()
  fake.pause()
  const closing = client.close()
  fake.end()
  await closing
  t.ok(client.isClosed)
})
