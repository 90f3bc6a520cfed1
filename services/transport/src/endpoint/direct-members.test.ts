// needs: nats
import { silentLogger } from '@tutti/chassis'
import {
  buildSubjects,
  decodeHeartbeat,
  encodeChunk,
  encodeHeartbeat,
  encodeMessage,
} from '@tutti/protocol'
import t from 'tap'
import { DirectLinks } from '../direct/direct-links.ts'
import { ENDPOINT_DEFAULTS } from '../endpoint-settings.ts'
import type { BrokerOptions } from '../endpoints.ts'
import { TransportEvents } from '../log-events.ts'
import { directOptions } from '../testing/direct-options.ts'
import {
  answer,
  collect,
  envelope,
  failureOf,
  openBroker,
  openStranger,
  openTestRouter,
  openTestStep,
  REVISION,
  ref,
  sendTo,
  type Teardown,
  tensorBytes,
  until,
  WITH_NATS,
} from '../testing/endpoints.ts'

const SUBJECTS = buildSubjects({ prefix: 'tutti', repository: 'default' })
const OPTIONS = directOptions('tls')

/** A router that has proven who it is to the step, and then says what it likes. */
async function openLiar(t: Teardown, broker: BrokerOptions) {
  const links = new DirectLinks({
    self: 'liar',
    role: 'router',
    direct: OPTIONS,
    settings: { ...ENDPOINT_DEFAULTS, directConnectMs: 5000 },
    events: new TransportEvents(silentLogger),
    maxPayload: () => 1_048_576,
    traffic: { message: () => {}, place: () => undefined, alive: () => {}, ended: () => {} },
  })
  t.teardown(() => links.close(100))
  const stranger = await openStranger(t, broker)
  stranger.subscribe(SUBJECTS.heartbeat('step', 'step'), ({ bytes }) => {
    links.heard({ ...decodeHeartbeat(bytes), revisions: [] })
  })
  await until(() => links.of('step') !== undefined)
  return links.of('step')
}

await t.test('a member speaks for itself alone over its connection', WITH_NATS, async (t) => {
  const broker = await openBroker(t)
  const executed: string[] = []
  const ignored: unknown[] = []
  const warn = (message: string, fields: unknown): void => {
    if (message === 'message ignored') ignored.push(fields)
  }
  const log = { ...silentLogger, warn }
  await openTestStep(
    t,
    broker,
    'step',
    async ({ requestKey }, tensors, sink) => {
      executed.push(requestKey)
      sink.send(answer(tensors[0]?.bytes ?? new Uint8Array()))
    },
    { direct: OPTIONS, log: { ...log, child: () => log } },
  )
  const connection = await openLiar(t, broker)
  const size = 300_000
  const offer = (from: string, bytes: number): Uint8Array =>
    encodeMessage({
      type: 'offer',
      from,
      call: 1,
      envelope: envelope(bytes, { requestKey: `of ${from}` }),
      parts: [
        bytes === size
          ? { kind: 'transfer', transfer: 1, size }
          : { kind: 'inline', bytes: tensorBytes(bytes) },
      ],
      responseCredits: 1,
    })
  const chunk = Buffer.from(
    encodeChunk({ from: 'victim', transfer: 1, offset: 0, total: size }, tensorBytes(size)),
  )
  connection?.sendMessage(offer('victim', 1))
  connection?.sendChunk(chunk.subarray(0, -size), chunk.subarray(-size), undefined)
  connection?.sendMessage(offer('victim', size))
  connection?.sendMessage(offer('liar', 1))
  await until(() => executed.length > 0)
  // Messages of a connection come in order: those before it were thrown away.
  t.same(executed, ['of liar'])
  t.match(ignored, [{ subject: 'direct liar', error: /it names 'victim' as its sender/, count: 1 }])
})

/** A step that takes a direct connection, and neither reads offers nor answers. */
async function openDeaf(t: Teardown, broker: BrokerOptions) {
  const offers: Uint8Array[] = []
  const links = new DirectLinks({
    self: 'deaf',
    role: 'step',
    direct: OPTIONS,
    settings: ENDPOINT_DEFAULTS,
    events: new TransportEvents(silentLogger),
    maxPayload: () => 1_048_576,
    traffic: {
      message: (_, bytes) => void offers.push(bytes),
      place: () => undefined,
      alive: () => {},
      ended: () => {},
    },
  })
  t.teardown(() => links.close(100))
  await links.listening
  const direct = links.announced
  const stranger = await openStranger(t, broker)
  stranger.subscribe(SUBJECTS.ping('deaf'), ({ reply }) => {
    if (reply !== undefined) stranger.publish(reply, new Uint8Array())
  })
  const say = async (isThere: boolean): Promise<void> => {
    const heartbeat = encodeHeartbeat({
      member: 'deaf',
      role: 'step',
      sequence: isThere ? 1 : 2,
      description: '',
      inFlight: 0,
      queued: 0,
      freeSlots: isThere ? 8 : 0,
      freeBytes: isThere ? 1_000_000 : 0,
      unaskedBytes: 0,
      draining: !isThere,
      transports: isThere ? ['nats'] : [],
      revisions: isThere ? [REVISION] : [],
      protocol: 1,
      ...(direct !== undefined && { direct }),
    })
    stranger.publish(SUBJECTS.heartbeat('deaf', 'step'), heartbeat)
    await stranger.flush()
  }
  await say(true)
  return { links, offers, say }
}

await t.test('what a step that leaves did not take can go elsewhere', WITH_NATS, async (t) => {
  const broker = await openBroker(t)
  const direct = directOptions('tls')
  const settings = { directConnectMs: 5000 }
  const router = await openTestRouter(t, broker, 'router', { direct, settings })
  const { links, offers, say } = await openDeaf(t, broker)
  await until(() => router.member.direct.length === 1)
  const offered = envelope(1)
  const quiet = { signal: new AbortController().signal }
  const call = sendTo(router, { replica: 'deaf' }, offered, [ref(tensorBytes(1))], quiet)
  const failure = failureOf(collect(call))
  await until(() => offers.length === 1)
  await links.close(1000)
  await until(() => router.member.direct.length === 0)
  await say(false)
  t.match(await failure, { reason: 'STEP_UNAVAILABLE' })
})
