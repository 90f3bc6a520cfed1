import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import type { ModelTarget, RequestContext, ResponseSink } from '@tutti/tensor'
import { RecordedResponses, requestContext } from '@tutti/tensor/testing'
import { StepDirectory } from '@tutti/transport'
import t from 'tap'
import {
  chain,
  oneToOne,
  ReplicaExecutors,
  request,
  testRouter,
  toConfig,
} from '../testing/index.ts'

const SEQUENCE = `${oneToOne} sequence_batching { max_sequence_idle_microseconds: 5000000 }`
const LOAD = { inFlight: 0, queued: 0, freeSlots: 9, freeBytes: 9e9 }

interface Attempt {
  readonly replica: string
  readonly target: ModelTarget
  readonly context: RequestContext
  readonly sink: ResponseSink
}

/** A router over replicas of a model with sequences, whose attempts the test answers. */
function open(names: readonly string[] = ['a', 'b', 'c']) {
  const clock = createManualClock()
  const attempts: Attempt[] = []
  const replicas = new ReplicaExecutors()
  const directory = new StepDirectory()
  const ensembles = { e: chain('m') }
  const { router } = testRouter({ replicas, directory, clock, ensembles })
  const serve = (name: string, revision = 'r', load: typeof LOAD | null = LOAD): void => {
    replicas.set(name, (target) => ({
      execute: ({ context }, sink) => void attempts.push({ replica: name, target, context, sink }),
    }))
    const versions = [{ version: 1, revision, state: 'READY' as const, reason: '' }]
    const config = toConfig('m', SEQUENCE)
    const models = [{ name: 'm', config, labels: {}, versions, reason: '' }]
    router.view.describe({ replica: name, models }, { statistics: async () => [] })
    if (load !== null) directory.report(name, load)
  }
  for (const name of names) serve(name)
  return {
    clock,
    directory,
    router,
    serve,
    attempts,
    /** The requests that were sent, and where: `replica id`. */
    get sent(): readonly string[] {
      return attempts.map(({ replica, context }) => `${replica} ${context.id}`)
    },
    send: (id: bigint | string, o: Partial<RequestContext> = {}, model = 'm') => {
      const sink = new RecordedResponses()
      const controller = new AbortController()
      const context = requestContext({ correlationId: id, ...o })
      const one = request(model === 'm' ? 'X' : 'IN', [1], { context })
      router.resolve(model, '').execute(one, sink, { signal: controller.signal })
      return { sink, cancel: (): void => controller.abort(new ServeError('CANCELLED', '')) }
    },
    /** Answers the attempt. */
    answer: (index: number): void => {
      const final = { index: 0, final: true, outputs: [], parameters: new Map() }
      attempts[index]?.sink.send(final)
    },
  }
}

const START = { sequenceStart: true }
const NOT_STARTED =
  "inference request for sequence 7 to model 'm' must specify the START flag on the first request of the sequence"

function errorOf(one: { readonly sink: RecordedResponses } | undefined): ServeError | undefined {
  return one?.sink.responses.find(({ error }) => error !== undefined)?.error
}

await t.test(
  'all requests of a sequence go to one replica, and sequences to all of them',
  async (t) => {
    const rig = open()
    const replicas = new Set<string>()
    for (let id = 1n; id <= 30n; id += 1n) {
      const begin = rig.attempts.length
      rig.send(id, START)
      rig.answer(begin)
      rig.send(id)
      rig.answer(begin + 1)
      t.equal(rig.attempts[begin + 1]?.replica, rig.attempts[begin]?.replica)
      replicas.add(rig.attempts[begin]?.replica ?? '')
    }
    t.same([...replicas].toSorted(), ['a', 'b', 'c'])
  },
)

await t.test('another router sends a sequence to the same replica', async (t) => {
  const [one, other] = [open(['a', 'b', 'c']), open(['c', 'a', 'b'])]
  for (let id = 1n; id <= 20n; id += 1n) {
    one.send(id, START)
    other.send(id)
  }
  t.same(
    other.attempts.map(({ replica }) => replica),
    one.attempts.map(({ replica }) => replica),
  )
})

await t.test('one request of a sequence is on its way at a time, in their order', async (t) => {
  const rig = open(['a'])
  for (const id of ['1', '2', '3']) rig.send(7n, { id, sequenceStart: id === '1' })
  rig.send(8n, { id: 'other', ...START })
  t.same(rig.sent, ['a 1', 'a other'])
  rig.answer(0)
  t.same(rig.sent, ['a 1', 'a other', 'a 2'])
  rig.attempts[2]?.sink.fail(new ServeError('ENGINE_FAILED', 'no'), 'maybe')
  t.same(rig.sent, ['a 1', 'a other', 'a 2', 'a 3'])
})

await t.test(
  'a sequence whose replica is gone has to start again, and does so elsewhere',
  async (t) => {
    const rig = open()
    rig.send(7n, START)
    const lost = rig.attempts[0]?.replica ?? ''
    rig.answer(0)
    rig.directory.drain(lost)
    const refused = rig.send(7n)
    t.match(errorOf(refused), { reason: 'SEQUENCE_NOT_STARTED', message: NOT_STARTED })
    rig.send(7n, START)
    t.equal(rig.attempts.length, 2)
    t.not(rig.attempts[1]?.replica, lost)
    rig.answer(1)
    rig.directory.drain(lost, false)
    rig.send(7n)
    t.equal(rig.attempts[2]?.replica, rig.attempts[1]?.replica, 'it stays there')
  },
)

await t.test('a replica that is slow to answer is waited for', async (t) => {
  const rig = open()
  rig.send(7n, START)
  const slow = rig.attempts[0]?.replica ?? ''
  rig.answer(0)
  rig.directory.suspect(slow, true)
  const waiting = rig.send(7n)
  t.equal(rig.attempts.length, 1)
  rig.directory.suspect(slow, false)
  t.equal(rig.attempts[1]?.replica, slow)
  rig.answer(1)
  t.equal(errorOf(waiting), undefined)
  rig.directory.suspect(slow, true)
  const refused = rig.send(7n)
  rig.directory.remove(slow)
  t.match(errorOf(refused), { message: NOT_STARTED })
})

await t.test('a sequence keeps the revision of its first request', async (t) => {
  const rig = open(['a'])
  rig.send(7n, START)
  rig.answer(0)
  rig.serve('b', 'newer')
  rig.send(7n)
  t.match(rig.attempts[1], { replica: 'a', target: { revision: 'r' } })
})

await t.test('a request that is given up while it waits ends its sequence', async (t) => {
  const rig = open(['a'])
  rig.send(7n, START)
  const [second, third] = [rig.send(7n), rig.send(7n)]
  second.cancel()
  t.match(errorOf(second), { code: 'CANCELLED' })
  t.match(errorOf(third), { code: 'CANCELLED', message: /^sequence 7 ended early/ })
  rig.answer(0)
  t.match(errorOf(rig.send(7n)), { message: NOT_STARTED })
  rig.send(7n, START)
  t.equal(rig.attempts.length, 2)
})

await t.test('a router forgets sequences that ended, and those that are idle', async (t) => {
  const rig = open(['a'])
  const places = rig.directory.places.byRevision
  rig.send(7n, { sequenceStart: true, sequenceEnd: true })
  rig.answer(0)
  rig.send(7n)
  t.equal(rig.attempts.length, 2, 'the step knows whether it has it')
  rig.attempts[1]?.sink.fail(new ServeError('SEQUENCE_NOT_STARTED', NOT_STARTED), 'maybe')
  for (let i = 0; i < 50; i += 1) {
    rig.send(`idle ${i}`, START)
    rig.answer(rig.attempts.length - 1)
  }
  t.equal(rig.router.sequences.size, 50)
  rig.clock.advance(5000)
  rig.send(8n, START)
  t.equal(rig.router.sequences.size, 1)
  t.equal([...places.values()].flat()[0]?.inFlight, 1)
})

await t.test(
  'a request without a correlation id, or to a model of this process, goes as ever',
  async (t) => {
    const rig = open(['a'])
    rig.send(0n)
    rig.send('')
    t.equal(rig.attempts.length, 2)
    t.equal(rig.router.sequences.size, 0)
  },
)

await t.test("the steps of an ensemble are of its request's sequence", async (t) => {
  const rig = open()
  rig.send(7n, START, 'e')
  const final = { index: 0, final: true, parameters: new Map() }
  rig.attempts[0]?.sink.send({ ...final, outputs: request('Y').inputs })
  const replica = rig.attempts[0]?.replica ?? ''
  rig.directory.drain(replica)
  const refused = rig.send(7n, {}, 'e')
  t.match(errorOf(refused), { message: `in ensemble 'e', ${NOT_STARTED}` })
})
