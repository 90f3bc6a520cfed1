// needs: nats
import {
  buildSubjects,
  decodeHeartbeat,
  decodeMessage,
  encodeHeartbeat,
  encodeMessage,
  type Heartbeat,
} from '@tutti/protocol'
import t from 'tap'
import {
  collect,
  echo,
  envelope,
  failureOf,
  openBroker,
  openStranger,
  openTestRouter,
  openTestStep,
  ref,
  SERVED,
  sendTo,
  tensorBytes,
  until,
  WITH_NATS,
} from '../testing/endpoints.ts'

const SUBJECTS = buildSubjects({ prefix: 'tutti', repository: 'default' })
const OLD = { model: 'old', version: 1, revision: 'x' } as const
const SAYS: Heartbeat = {
  member: 'earlier',
  role: 'step',
  sequence: 0,
  description: 'x',
  inFlight: 0,
  queued: 0,
  freeSlots: 9,
  freeBytes: 9e9,
  draining: false,
  transports: ['nats'],
  revisions: [[OLD.model, OLD.version, OLD.revision]],
  protocol: 1,
}

await t.test('members of this release and of the one before', WITH_NATS, async (t) => {
  const broker = await openBroker(t)
  const router = await openTestRouter(t, broker, 'router')
  await openTestStep(t, broker, 'step', echo)
  const earlier = await openStranger(t, broker)
  /** Who is heard where members of earlier releases listen. */
  const heard = new Set<string>()
  earlier.subscribe(SUBJECTS.heartbeats(), ({ bytes }) => {
    heard.add(decodeHeartbeat(bytes).member)
  })
  const offered: string[][] = []
  earlier.subscribe(SUBJECTS.control('earlier'), ({ bytes }) => {
    const message = decodeMessage(bytes)
    if (message.type !== 'offer') return
    offered.push([...Object.keys(message), ...message.parts.flatMap(Object.keys)])
    const { from, call } = message
    const error = { code: 'UNAVAILABLE', reason: 'OVERLOADED', message: '', details: {} } as const
    const refused = { from: 'earlier', type: 'refused', call, error } as const
    earlier.publish(SUBJECTS.control(from), encodeMessage(refused))
  })
  await earlier.flush()
  await until(() => router.directory.isServed(SERVED))
  t.same([...heard], [], 'nothing is sent twice without need')

  earlier.publish(SUBJECTS.heartbeat('earlier'), encodeHeartbeat(SAYS))
  await until(() => heard.has('router') && heard.has('step'))
  await until(() => router.directory.isServed(OLD))
  const place = router.directory.places.acquire(OLD)
  if (place === undefined) throw new Error('no place')
  const { signal } = new AbortController()
  for (const size of [8, 300_000]) {
    const sent = sendTo(router, place.address, envelope(size), [ref(tensorBytes(size))], { signal })
    t.match(await failureOf(collect(sent)), { reason: 'OVERLOADED' })
  }
  const known = ['from', 'call', 'type', 'envelope', 'parts', 'responseCredits', 'kind']
  for (const field of ['bytes', 'transfer', 'size']) known.push(field)
  t.equal(offered.length, 2)
  t.same(
    offered.flat().filter((field) => !known.includes(field)),
    [],
    'it is offered nothing that it does not know',
  )
})
