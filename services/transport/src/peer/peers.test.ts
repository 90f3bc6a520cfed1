import { startNatsServer } from '@tutti/chassis/testing'
import t from 'tap'
import {
  brokerAt,
  collect,
  echo,
  envelope,
  openTestRouter,
  openTestStep,
  ref,
  SERVED,
  tensorBytes,
  until,
  WITH_NATS,
} from '../testing/peers.ts'

const quiet = { signal: new AbortController().signal }

await t.test('tensors of every size come back with the same bytes', WITH_NATS, async (t) => {
  const server = await startNatsServer()
  t.teardown(() => server.stop())
  const broker = brokerAt(server.url)
  const router = await openTestRouter(t, broker, 'router')
  await openTestStep(t, broker, 'step', echo)
  await until(() => router.directory.isServed(SERVED))
  for (const size of [0, 1, 65_536, 65_537, 786_432, 1_048_576, 3_000_001, 64 * 1024 * 1024]) {
    const bytes = tensorBytes(size)
    const started = performance.now()
    const got = await collect(
      router.peer.bearer.call({ replica: 'step' }, envelope(size), [ref(bytes)], quiet),
    )
    t.comment(`${size}: ${performance.now() - started} ms`)
    t.equal(got.length, 1)
    t.ok(Buffer.from(bytes).equals(got[0]?.outputs[0]?.data ?? new Uint8Array()), `${size} bytes`)
  }
})
