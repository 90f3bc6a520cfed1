// needs: nats
import { silentLogger } from '@tutti/chassis'
import { startNatsServer } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import {
  buildSubjects,
  decodeMessage,
  encodeChunk,
  encodeHeartbeat,
  encodeMessage,
} from '@tutti/protocol'
import * as fc from 'fast-check'
import t from 'tap'
import type { OutgoingMessage } from '../send-message.ts'
import {
  brokerAt,
  collect,
  echo,
  envelope,
  failureOf,
  membersOver,
  openStranger,
  ref,
  SERVED,
  sendTo,
  type Teardown,
  type TestTransport,
  TRANSPORTS,
  tensorBytes,
  until,
  WITH_NATS,
} from '../testing/endpoints.ts'

const quiet = { signal: new AbortController().signal }
const SUBJECTS = buildSubjects({ prefix: 'tutti', repository: 'default' })

/** A router and a step that serve over the transport, with a stranger beside them, and a check that they still do. */
async function openScene(t: Teardown, via: TestTransport) {
  const { openTestRouter, openTestStep } = membersOver(via)
  const server = await startNatsServer()
  t.teardown(() => server.stop())
  const broker = brokerAt(server.url)
  const router = await openTestRouter(t, broker, 'router')
  const errors: string[] = []
  const log = { ...silentLogger, error: (message: string) => void errors.push(message) }
  await openTestStep(t, broker, 'step', echo, { log: { ...log, child: () => log } })
  await until(router.isReached)
  const stranger = await openStranger(t, broker)
  const stillServes = async (): Promise<boolean> => {
    const bytes = tensorBytes(300_000)
    const place = router.directory.places.acquire(SERVED)
    if (place === undefined) return false
    const call = sendTo(router, place.address, envelope(300_000), [ref(bytes)], quiet)
    const [response] = await collect(call)
    place.inFlight -= 1
    const answer = await router.member.ask('step', 'describe', {}, quiet)
    return (
      errors.length === 0 &&
      answer !== undefined &&
      Buffer.from(bytes).equals(response?.outputs[0]?.data ?? new Uint8Array())
    )
  }
  return { broker, router, stranger, stillServes }
}

const SUBJECTS_OF_ALL = ['router', 'step'].flatMap((member) => [
  SUBJECTS.control(member),
  SUBJECTS.data(member),
  SUBJECTS.heartbeat(member, 'router'),
  SUBJECTS.heartbeat(member, 'step'),
  SUBJECTS.ping(member),
  `${SUBJECTS.inbox(member)}.peer.step`,
  `${SUBJECTS.inbox(member)}.call.1`,
  `${SUBJECTS.inbox(member)}.member.step`,
  `${SUBJECTS.inbox(member)}.x`,
])

const HOSTILE = encodeHeartbeat({
  member: 'hostile',
  role: 'step',
  sequence: 1,
  description: 'x',
  inFlight: 0,
  queued: 0,
  freeSlots: 9,
  freeBytes: 9,
  unaskedBytes: 0,
  draining: false,
  transports: ['nats'],
  revisions: [['other', 1, 'x']],
  protocol: 1,
})

/** Every message about calls and transfers that do not exist, or that other members made. */
function foreignMessages(call: number): OutgoingMessage[] {
  const error = { code: 'INTERNAL', reason: 'INTERNAL', message: 'foreign', details: {} } as const
  const credits = [{ transfer: call, upTo: Number.MAX_SAFE_INTEGER }]
  return [
    { type: 'accepted', call, credits },
    { type: 'refused', call, error },
    {
      type: 'response',
      call,
      index: 0,
      final: true,
      outputs: [],
      parts: [],
      parameters: new Map(),
    },
    { type: 'credit', call, credits },
    { type: 'response-credit', call, responses: Number.MAX_SAFE_INTEGER, received: 0 },
    { type: 'resend', call, transfer: call, offset: 0 },
    { type: 'cancel', call, error },
    { type: 'done', call },
  ]
}

for (const via of TRANSPORTS) {
  const { openTestRouter, openTestStep } = membersOver(via)
  await t.test(`over ${via}`, WITH_NATS, async (t) => {
    await t.test('garbage on every subject changes nothing', WITH_NATS, async (t) => {
      const { stranger, stillServes } = await openScene(t, via)
      const valid = [
        encodeMessage({ from: 'stranger', call: 1, type: 'done' }),
        encodeChunk({ from: 'stranger', transfer: 1, offset: 0, total: 3 }, tensorBytes(3)),
        Buffer.from('{"member":"stranger"}'),
      ]
      const damaged = fc
        .tuple(fc.constantFrom(...valid), fc.nat(), fc.nat({ max: 255 }))
        .map(([bytes, at, value]) => {
          const copy = Uint8Array.from(bytes)
          copy[at % copy.byteLength] = value
          return copy
        })
      const payload = fc.oneof(fc.uint8Array({ maxLength: 100 }), damaged)
      for (const bytes of fc.sample(payload, 200)) {
        for (const subject of SUBJECTS_OF_ALL) {
          stranger.publish(subject, bytes)
          stranger.publish(subject, bytes, SUBJECTS.control('router'))
        }
      }
      await stranger.flush()
      t.ok(await stillServes())
    })

    await t.test(
      'what strangers say of calls that are not theirs changes nothing',
      WITH_NATS,
      async (t) => {
        const { router, stranger, stillServes } = await openScene(t, via)
        const bytes = tensorBytes(8 * 1024 * 1024)
        const call = sendTo(
          router,
          { replica: 'step' },
          envelope(bytes.byteLength),
          [ref(bytes)],
          quiet,
        )
        const answered = collect(call)
        for (let number = 0; number < 20; number++) {
          for (const message of foreignMessages(number)) {
            for (const member of ['router', 'step']) {
              const said = encodeMessage({ ...message, from: 'stranger' })
              stranger.publish(SUBJECTS.control(member), said)
              stranger.publish(SUBJECTS.control(member), said)
            }
          }
          const header = { from: 'stranger', transfer: number, offset: 0, total: 1000 }
          stranger.publish(SUBJECTS.data('step'), encodeChunk(header, tensorBytes(1000)))
        }
        const [response] = await answered
        t.ok(Buffer.from(bytes).equals(response?.outputs[0]?.data ?? new Uint8Array()))
        t.ok(await stillServes())
      },
    )

    await t.test(
      'a hostile caller takes its share of a step, and no more',
      WITH_NATS,
      async (t) => {
        const { stranger, stillServes } = await openScene(t, via)
        const refusals: string[] = []
        stranger.subscribe(SUBJECTS.control('hostile'), ({ bytes }) => {
          const text = Buffer.from(bytes).toString('latin1')
          const reason = /OVERLOADED|MESSAGE_TOO_LARGE|MALFORMED_MESSAGE/.exec(text)
          if (reason !== null) refusals.push(reason[0])
        })
        const size = 500 * 1024 * 1024
        for (let call = 1; call <= 8; call++) {
          const offer = encodeMessage({
            from: 'hostile',
            type: 'offer',
            call,
            envelope: envelope(size),
            parts: [{ kind: 'transfer', transfer: call, size }],
            responseCredits: Number.MAX_SAFE_INTEGER,
          })
          stranger.publish(SUBJECTS.control('step'), offer)
        }
        await until(() => refusals.length === 7)
        t.ok(refusals.every((reason) => reason === 'OVERLOADED'))
        t.ok(await stillServes())
      },
    )

    await t.test(
      'of a replica that never was, no offer counts as perhaps executed',
      WITH_NATS,
      async (t) => {
        const { router, stranger, stillServes } = await openScene(t, via)
        stranger.publish(SUBJECTS.heartbeat('hostile', 'step'), HOSTILE)
        await until(() => router.changed.includes('hostile'))
        const to = { replica: 'hostile' }
        const calls = Array.from({ length: 20 }, () =>
          failureOf(collect(sendTo(router, to, envelope(0), [ref(tensorBytes(0))], quiet))),
        )
        // The first report without a responder says that the member is gone. The offers behind it reached no member either.
        for (const failure of await Promise.all(calls))
          t.match(failure, { reason: 'STEP_UNAVAILABLE' })
        t.same(router.gone, ['hostile'])
        t.ok(await stillServes())
      },
    )

    await t.test(
      'a hostile replica cannot make a router wait or allocate',
      WITH_NATS,
      async (t) => {
        const { router, stranger, stillServes } = await openScene(t, via)
        stranger.publish(SUBJECTS.heartbeat('hostile', 'step'), HOSTILE)
        await until(() => router.changed.includes('hostile'))
        const size = 600 * 1024 * 1024
        const answers: OutgoingMessage[] = [
          {
            type: 'response',
            call: 0,
            index: 7_000_000,
            final: false,
            outputs: [],
            parts: [],
            parameters: new Map(),
          },
          {
            type: 'response',
            call: 0,
            index: 0,
            final: false,
            outputs: [{ name: 'y', datatype: 'UINT8', shape: [size] }],
            parts: [{ kind: 'transfer', transfer: 1, size }],
            parameters: new Map(),
          },
        ]
        let next = 0
        stranger.subscribe(SUBJECTS.control('hostile'), ({ bytes }) => {
          const isOffer = bytes[4] === 1
          const said = answers[next]
          if (!isOffer || said === undefined) return
          next += 1
          const call = next
          stranger.publish(
            SUBJECTS.control('router'),
            encodeMessage({ ...said, call, from: 'hostile' }),
          )
        })
        await stranger.flush()
        const reasons: unknown[] = []
        for (let i = 0; i < answers.length; i++) {
          const call = sendTo(
            router,
            { replica: 'hostile' },
            envelope(0),
            [ref(tensorBytes(0))],
            quiet,
          )
          reasons.push(ServeError.from(await failureOf(collect(call))).reason)
        }
        t.same(reasons, ['RESPONSE_INVALID', 'MESSAGE_TOO_LARGE'])
        t.ok(await stillServes())
      },
    )

    await t.test(
      'a description that is not the one of the heartbeats is refused',
      WITH_NATS,
      async (t) => {
        const { router, broker } = await openScene(t, via)
        let said = 0
        await openTestStep(t, broker, 'fickle', echo, { describe: () => ({ said: ++said }) })
        await until(() => router.changed.includes('fickle'))
        const asked = router.member.ask('fickle', 'describe', null, quiet)
        t.match(await failureOf(asked), {
          reason: 'MALFORMED_MESSAGE',
          message: /heartbeats/,
          details: { replica: 'fickle' },
        })
      },
    )

    await t.test(
      'work is taken only of callers whose end would be noticed',
      WITH_NATS,
      async (t) => {
        const server = await startNatsServer()
        t.teardown(() => server.stop())
        const broker = brokerAt(server.url)
        await openTestStep(t, broker, 'step', echo, { settings: { maxMembers: 1 } })
        const stranger = await openStranger(t, broker)
        const answers: string[] = []
        for (const from of ['first', 'second']) {
          stranger.subscribe(SUBJECTS.control(from), ({ bytes }) => {
            const { type } = decodeMessage(bytes)
            answers.push(`${from}: ${type}`)
          })
        }
        await stranger.flush()
        for (const from of ['first', 'second']) {
          const parts = [{ kind: 'inline', bytes: tensorBytes(1) } as const]
          stranger.publish(
            SUBJECTS.control('step'),
            encodeMessage({
              type: 'offer',
              from,
              call: 1,
              envelope: envelope(1),
              parts,
              responseCredits: 1,
            }),
          )
        }
        await until(() => answers.length >= 2)
        t.same(answers.toSorted(), ['first: response', 'second: refused'])
      },
    )

    await t.test(
      'members of other versions are called if their ranges meet',
      WITH_NATS,
      async (t) => {
        const server = await startNatsServer()
        t.teardown(() => server.stop())
        const broker = brokerAt(server.url)
        const warnings: [string, unknown][] = []
        const warn = (message: string, fields: unknown): void =>
          void warnings.push([message, fields])
        const log = { ...silentLogger, warn }
        const router = await openTestRouter(t, broker, 'router', {
          log: { ...log, child: () => log },
        })
        const stranger = await openStranger(t, broker)
        const say = (fields: object): void => {
          const heartbeat = Object(JSON.parse(Buffer.from(HOSTILE).toString('utf8')))
          const bytes = Buffer.from(JSON.stringify({ ...heartbeat, ...fields }))
          const member = String(Reflect.get(fields, 'peer'))
          stranger.publish(SUBJECTS.heartbeat(member, 'step'), bytes)
        }
        const next = { peer: 'next', newestProtocol: 2, revisions: [['m', 1, 'next']] }
        const later = {
          protocol: 2,
          newestProtocol: 3,
          freeSlots: 'many',
          revisions: [['n', 1, 'x']],
        }
        say(next)
        say({ peer: 'later', ...later })
        say({ peer: 'later', ...later })
        say({ peer: 'router-2', protocol: 2, role: 'router', revisions: [] })
        await until(() => router.changed.length > 0 && router.member.foreign.length === 2)
        t.same(router.changed, ['next'])
        t.ok(router.directory.isServed({ model: 'm', version: 1, revision: 'next' }))
        t.notOk(router.directory.isServed({ model: 'n', version: 1, revision: 'x' }))
        t.match(router.member.foreign, [
          { member: 'later', oldestProtocol: 2, newestProtocol: 3, models: ['n'] },
          { member: 'router-2', oldestProtocol: 2, newestProtocol: 2, role: 'router' },
        ])
        t.match(
          warnings.filter(([message]) => message.startsWith('member speaks')),
          [
            [
              /it is not called/,
              { member: 'later', oldestProtocol: 2, newestProtocol: 3, want: 1 },
            ],
            [/it is not called/, { member: 'router-2' }],
          ],
          'each is said once',
        )
        const message = Buffer.from(encodeMessage({ from: 'next', call: 1, type: 'done' }))
        const chunk = Buffer.from(
          encodeChunk({ from: 'next', transfer: 1, offset: 0, total: 3 }, tensorBytes(3)),
        )
        for (const bytes of [message, chunk]) bytes.writeUInt8(2, 3)
        stranger.publish(SUBJECTS.control('router'), message)
        stranger.publish(SUBJECTS.data('router'), chunk)
        await until(() => warnings.some(([text]) => text === 'message ignored'))
        t.match(
          warnings.find(([text]) => text === 'message ignored'),
          [/./, { error: /version: 2, want 1/, count: 1 }],
        )
      },
    )
  })
}
