// needs: nats
import { ServeError } from '@tutti/errors'
import type { StepResponse } from '@tutti/tensor'
import t from 'tap'
import {
  answer,
  collect,
  echo,
  envelope,
  failureOf,
  openBroker,
  openTestRouter,
  openTestStep,
  ref,
  SERVED,
  sendTo,
  tensorBytes,
  until,
  WITH_NATS,
} from '../testing/endpoints.ts'
import type { TestHandler } from '../testing/envelopes.ts'

const quiet = { signal: new AbortController().signal }
const STEP = { replica: 'step' }
const same = (want: Uint8Array, got: StepResponse | undefined): boolean =>
  Buffer.from(want).equals(got?.outputs[0]?.data ?? new Uint8Array())

const tooLarge: TestHandler = async (_envelope, _tensors, sink) => {
  sink.send(answer(tensorBytes(1001)))
}

await t.test('tensors of every size come back with the same bytes', WITH_NATS, async (t) => {
  const broker = await openBroker(t)
  const router = await openTestRouter(t, broker, 'router')
  await openTestStep(t, broker, 'step', echo)
  await until(() => router.directory.isServed(SERVED))
  t.same(router.changed, ['step'])
  for (const size of [0, 1, 65_536, 65_537, 786_432, 1_048_576, 3_000_001]) {
    const bytes = tensorBytes(size)
    const call = sendTo(router, STEP, envelope(size), [ref(bytes)], quiet)
    const got = await collect(call)
    t.equal(got.length, 1)
    t.ok(same(bytes, got[0]), `${size} bytes`)
  }
})

await t.test('a router hears nothing of the step of its own process', WITH_NATS, async (t) => {
  const broker = await openBroker(t)
  const router = await openTestRouter(t, broker, 'router', { ownStep: 'own' })
  const own = await openTestStep(t, broker, 'own', echo)
  await until(() => router.member.transport.members.get('step') === 1)
  const { directory } = router
  directory.announce({ replica: 'own' }, [SERVED])
  await own.close()
  const other = await openTestStep(t, broker, 'other', echo)
  await until(() => router.changed.includes('other'))
  await other.close()
  await until(() => router.gone.includes('other'))
  t.same([router.changed, router.gone], [['other'], ['other']])
  t.ok(directory.takesWork('own'), 'what it knows of the step is its own')
})

await t.test('small calls pass beside a 64 MB tensor', WITH_NATS, async (t) => {
  const broker = await openBroker(t)
  // A machine that is busy with other things lets a transfer stand still for seconds.
  const settings = { stallMs: 60_000 }
  const router = await openTestRouter(t, broker, 'router', { settings })
  await openTestStep(t, broker, 'step', echo, { settings })
  await until(() => router.directory.isServed(SERVED))
  const large = tensorBytes(64 * 1024 * 1024)
  const small = tensorBytes(10)
  let passed = 0
  const ended = new AbortController()
  const transfer = collect(
    sendTo(router, STEP, envelope(large.byteLength), [ref(large)], quiet),
  ).finally(() => ended.abort())
  while (!ended.signal.aborted) {
    await collect(sendTo(router, STEP, envelope(10), [ref(small)], quiet))
    passed += 1
  }
  const [got] = await transfer
  t.ok(same(large, got), 'all 64 MB')
  t.ok(passed > 5, `${passed} small calls ended before it`)
})

await t.test('a broker that takes little gets smaller pieces', WITH_NATS, async (t) => {
  const broker = await openBroker(t, { config: 'max_payload: 8192' })
  const router = await openTestRouter(t, broker, 'router')
  await openTestStep(t, broker, 'step', echo)
  await until(() => router.directory.isServed(SERVED))
  for (const size of [4000, 5000, 100_000]) {
    const bytes = tensorBytes(size)
    const [got] = await collect(sendTo(router, STEP, envelope(size), [ref(bytes)], quiet))
    t.ok(same(bytes, got), `${size} bytes`)
  }
  const wordy = envelope(0, { requestedOutputs: ['y'.repeat(9000)] })
  t.match(await failureOf(collect(sendTo(router, STEP, wordy, [ref(tensorBytes(0))], quiet))), {
    reason: 'MESSAGE_TOO_LARGE',
    message: /offer of \d+ bytes on the way to member 'step'.*8192/,
  })
})

await t.test('without a replica a call is STEP_UNAVAILABLE at once', WITH_NATS, async (t) => {
  const router = await openTestRouter(t, await openBroker(t), 'router')
  t.match(
    await failureOf(
      collect(sendTo(router, { replica: 'missing' }, envelope(0), [ref(tensorBytes(0))], quiet)),
    ),
    { reason: 'STEP_UNAVAILABLE', details: { replica: 'missing', model: 'm' } },
  )
  t.match(await failureOf(router.member.ask('missing', 'describe', {}, quiet)), {
    reason: 'STEP_UNAVAILABLE',
    details: { replica: 'missing' },
  })
})

await t.test('a tensor over the bound is refused before anything is sent', WITH_NATS, async (t) => {
  const broker = await openBroker(t)
  const settings = { tensorBytesPerMember: 1000 }
  const router = await openTestRouter(t, broker, 'router', { settings })
  await openTestStep(t, broker, 'step', tooLarge, { settings })
  await until(() => router.directory.isServed(SERVED))
  const call = (size: number): Promise<StepResponse[]> =>
    collect(sendTo(router, STEP, envelope(size), [ref(tensorBytes(size))], quiet))
  t.match(await failureOf(call(1001)), {
    reason: 'MESSAGE_TOO_LARGE',
    message: /input "x": 1001 bytes on the way to replica 'step', want at most 1000/,
  })
  t.match(await failureOf(call(1)), {
    reason: 'MESSAGE_TOO_LARGE',
    message: /output "y": 1001 bytes on the way to 'router', want at most 1000/,
  })
})

await t.test(
  'a cancel reaches the handler with its reason, and the caller at once',
  WITH_NATS,
  async (t) => {
    const broker = await openBroker(t)
    const router = await openTestRouter(t, broker, 'router')
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
    const { promise: cancelled, resolve: cancelledWith } = Promise.withResolvers<unknown>()
    await openTestStep(t, broker, 'step', (_envelope, _tensors, _sink, { signal }) => {
      signal.addEventListener('abort', () => cancelledWith(signal.reason))
      begin()
      return new Promise(() => {})
    })
    await until(() => router.directory.isServed(SERVED))
    const cancel = new AbortController()
    const reason = new ServeError('CANCELLED', 'the client went away')
    const answered = collect(sendTo(router, STEP, envelope(0), [ref(tensorBytes(0))], cancel))
    await begun
    cancel.abort(reason)
    t.match(await failureOf(answered), reason)
    t.match(await cancelled, { reason: 'CANCELLED', message: 'the client went away' })
    t.match(
      await failureOf(collect(sendTo(router, STEP, envelope(0), [ref(tensorBytes(0))], cancel))),
      reason,
      'also when it came first',
    )
  },
)

await t.test('a router that leaves is not asked what it says of itself', WITH_NATS, async (t) => {
  const broker = await openBroker(t)
  const asked: string[] = []
  const stays = await openTestRouter(t, broker, 'stays', {
    routerChanged: (router) => void asked.push(router),
  })
  const leaves = await openTestRouter(t, broker, 'leaves')
  await until(() => asked.length > 0)
  await leaves.member.drain(quiet)
  await leaves.member.close()
  await until(() => stays.gone.length > 0)
  t.same(asked, ['leaves'])
})

await t.test('several routers know one another and share the steps', WITH_NATS, async (t) => {
  const broker = await openBroker(t)
  const known: string[] = []
  const routerChanged = (router: string): void => void known.push(router)
  const a = await openTestRouter(t, broker, 'router.a', { routerChanged })
  const b = await openTestRouter(t, broker, 'router b', { routerChanged })
  const served = new Map<string, number>()
  for (const name of ['step 1', 'step.2']) {
    await openTestStep(t, broker, name, async (_envelope, _tensors, sink) => {
      served.set(name, (served.get(name) ?? 0) + 1)
      sink.send(answer(tensorBytes(3)))
    })
  }
  await until(() => a.changed.length === 2 && b.changed.length === 2)
  await until(() => known.length === 2)
  t.same(known.toSorted(), ['router b', 'router.a'])
  for (let i = 0; i < 20; i++) {
    for (const router of [a, b]) {
      const place = router.directory.places.acquire(SERVED)
      if (place === undefined) throw new Error('no place')
      await collect(sendTo(router, place.address, envelope(0), [ref(tensorBytes(0))], quiet))
      place.inFlight -= 1
    }
  }
  t.same([...served.values()], [20, 20])
})
