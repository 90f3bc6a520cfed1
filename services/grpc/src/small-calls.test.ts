import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import { gzipSync } from 'node:zlib'
import { MAX_CONTROL_BYTES } from '@tutti/serving'
import t from 'tap'
import { CONTROL_BOUNDS } from './connections/server-calls.ts'
import { connectRaw, frame, handled, open, SERVICE, statusOf } from './testing/raw-calls.ts'
import { openTestServer } from './testing/test-server.ts'

t.setTimeout(120_000)

const SMALL_CALLS = ['ServerMetadata', 'ModelReady', 'ModelMetadata', 'ModelConfig'] as const

/** A small call that holds as many bytes as it may, by a few that are sent: its client does not end it. */
function beginSmall(session: ClientHttp2Session, method: string): ClientHttp2Stream {
  const stream = open(session, method, { 'grpc-encoding': 'gzip' })
  const packed = gzipSync(Buffer.alloc(MAX_CONTROL_BYTES))
  const head = frame(packed)
  head[0] = 1
  stream.write(head)
  return stream
}

/** The status of a small call of another client. */
function askSmall(session: ClientHttp2Session, path: string): Promise<unknown> {
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
  })
  stream.on('error', () => {})
  stream.end(Buffer.alloc(5))
  return statusOf(stream)
}

await t.test('small calls that do not end keep out neither health nor metadata', async (t) => {
  const { address, admission } = await openTestServer(t, { m: {} })
  const sessions = [await connectRaw(t, address), await connectRaw(t, address)]
  const held = Math.ceil((2 * CONTROL_BOUNDS.maxBytes) / MAX_CONTROL_BYTES)
  const statuses = Array.from({ length: held }, (_, i) => {
    const session = sessions[i % sessions.length]
    return session && statusOf(beginSmall(session, SMALL_CALLS[i % SMALL_CALLS.length] ?? ''))
  })
  for (const session of sessions) await handled(session)
  const other = await connectRaw(t, address)
  const paths = [`${SERVICE}/ServerLive`, `${SERVICE}/ServerReady`, '/grpc.health.v1.Health/Check']
  for (const path of [...paths, `${SERVICE}/ServerMetadata`]) {
    t.equal(await askSmall(other, path), '0', path)
  }
  t.equal(await statuses[0], '8', 'the one that waits longest has ended')
  const [ended] = admission.ended.families()
  const [pool] = ended?.series ?? []
  t.strictSame(pool?.labels, [['reason', 'pool']])
  t.ok((pool?.value ?? 0) >= held / 2 - 1, `${pool?.value} calls are counted`)
  t.equal(admission.bytes, 0, 'of a pool of their own')
})

await t.test('answers of small calls that are not read keep no others out', async (t) => {
  const served = await openTestServer(t, { m: {} })
  served.backend.index = Array.from({ length: 500 }, (_, i) => ({
    name: `model-${i}`,
    version: '1',
    state: 'READY' as const,
    reason: 'x'.repeat(4096),
  }))
  const session = connect(`http://${served.address}`, { settings: { initialWindowSize: 0 } })
  session.on('error', () => {})
  t.teardown(() => session.destroy())
  await once(session, 'localSettings')
  for (let i = 0; i < 40; i += 1) open(session, 'RepositoryIndex').end(Buffer.alloc(5))
  await handled(session)
  const other = await connectRaw(t, served.address)
  t.equal(await askSmall(other, `${SERVICE}/RepositoryIndex`), '0')
})

await t.test('health is answered when its headers have come', async (t) => {
  const { address } = await openTestServer(t, { m: {} })
  const session = await connectRaw(t, address)
  for (const path of [
    `${SERVICE}/ServerLive`,
    `${SERVICE}/ServerReady`,
    '/grpc.health.v1.Health/Check',
  ]) {
    for (const begun of [0, 3, 5, 500_000]) {
      const stream = session.request(
        { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' },
        { endStream: false },
      )
      stream.on('error', () => {})
      if (begun > 0) stream.write(Buffer.alloc(begun, 1))
      t.equal(await statusOf(stream), '0', `${path} ${begun}`)
    }
  }
})
