import { openCallScope } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import type { ExecuteOptions, ResponseSink, StepTimes } from '@tutti/tensor'
import { Lender, responsesTo } from '@tutti/tensor/testing'
import t from 'tap'
import {
  chain,
  collect,
  failure,
  floats,
  oneToOne,
  quiet,
  ReplicaExecutors,
  request,
  settle,
  testRouter,
  toConfig,
} from '../testing/index.ts'

const UNAVAILABLE = new ServeError('STEP_UNAVAILABLE', 'no replica')
const TIMES: StepTimes = {
  queueNs: 1,
  computeInputNs: 2,
  computeInferNs: 3,
  computeOutputNs: 4,
  transferNs: 0,
}
const DECOUPLED = `${oneToOne} model_transaction_policy { decoupled: true }`

/** An attempt that a test ends. */
interface Attempt {
  readonly model: string
  readonly sink: ResponseSink
  readonly options: ExecuteOptions
}

/** A router over one replica of `first` and `second`, and the ensemble `e` of both. */
function open(o: Partial<Parameters<typeof testRouter>[0]> & { readonly first?: string } = {}) {
  const clock = createManualClock()
  const attempts: Attempt[] = []
  const replicas = new ReplicaExecutors()
  replicas.set('a', ({ model }) => ({
    execute: (_request, sink, options) => void attempts.push({ model, sink, options }),
  }))
  const { first = oneToOne, ...rest } = o
  const ensembles = { e: chain('first', 'second') }
  const { router } = testRouter({ replicas, ensembles, clock, ...rest })
  const versions = [{ version: 1, revision: 'r', state: 'READY' as const, reason: '' }]
  const models = [
    { name: 'first', config: toConfig('first', first), labels: {}, versions, reason: '' },
    { name: 'second', config: toConfig('second', oneToOne), labels: {}, versions, reason: '' },
  ]
  router.view.describe({ replica: 'a', models }, { statistics: async () => [] })
  const answer = (attempt: Attempt | undefined, own: object = {}): void => {
    const outputs = [floats('Y', [1])]
    const response = { index: 0, final: true, outputs, parameters: new Map(), times: TIMES }
    attempt?.sink.send({ ...response, ...own })
  }
  const ask = (context: ExecuteOptions = quiet) =>
    responsesTo(router.resolve('e', ''), request('IN'), context)
  /** Lets the first two attempts fail, so that the third has to wait. */
  const failTwice = (): void => {
    attempts[0]?.sink.fail(UNAVAILABLE, 'no')
    attempts[1]?.sink.fail(UNAVAILABLE, 'no')
  }
  return { clock, attempts, router, answer, ask, failTwice }
}

function numbers(attempts: readonly Attempt[]): readonly string[] {
  return attempts.map(({ model, options }) => `${model} ${options.origin?.attempt}`)
}

await t.test('a step that cannot have run is tried three times', async (t) => {
  const { clock, attempts, router, answer, ask, failTwice } = open()
  const answered = collect(ask())
  t.same(numbers(attempts), ['first 1'])
  failTwice()
  t.same(numbers(attempts), ['first 1', 'first 2'], 'the second at once')
  clock.advance(9)
  await settle()
  t.equal(attempts.length, 2)
  clock.advance(1)
  await settle()
  t.same(numbers(attempts), ['first 1', 'first 2', 'first 3'])
  answer(attempts[2])
  t.same(numbers(attempts).slice(3), ['second 1'], 'the next step begins after the last attempt')
  answer(attempts[3])
  t.match(await answered, [{ index: 0, final: true }])
  t.same([router.memory.count, clock.pending], [0, 0])

  const failed = failure(ask())
  attempts.splice(0, 4)
  failTwice()
  clock.advance(10)
  await settle()
  attempts[2]?.sink.fail(UNAVAILABLE, 'no')
  t.match(await failed, {
    reason: 'STEP_UNAVAILABLE',
    message: "in ensemble 'e', no replica",
    details: { ensemble: 'e', step: 'first', attempt: '3' },
  })
  t.equal(router.memory.count, 0)
})

await t.test('a cancel and a deadline end the wait for another attempt', async (t) => {
  for (const how of ['cancel', 'deadline'] as const) {
    const { clock, attempts, router, ask, failTwice } = open()
    const scope = openCallScope({ clock, ...(how === 'deadline' && { remainingMs: 5 }) })
    const ended = failure(ask(scope.context))
    failTwice()
    if (how === 'cancel') scope.cancel(new ServeError('CANCELLED', 'gone'))
    else clock.advance(5)
    t.match(await ended, { reason: how === 'cancel' ? 'CANCELLED' : 'DEADLINE_EXCEEDED' })
    scope.close()
    await settle()
    clock.advance(100)
    t.same([attempts.length, router.memory.count, clock.pending], [2, 0, 0], how)
  }
})

await t.test('an attempt that fails after a cancel is the last', async (t) => {
  const lender = new Lender()
  const { attempts, router } = open()
  const cancel = new AbortController()
  const { tensors, retain, end } = lender.lend(request('IN').inputs)
  const lent = { ...request('IN'), inputs: tensors, retain }
  const ended = failure(responsesTo(router.resolve('e', ''), lent, { signal: cancel.signal }))
  cancel.abort(new ServeError('CANCELLED', 'gone'))
  end()
  t.equal(lender.open, 0)
  attempts[0]?.sink.fail(UNAVAILABLE, 'no')
  t.equal(attempts.length, 1, 'its inputs are back at their owner')
  t.match(await ended, { reason: 'CANCELLED' })
})

await t.test('a step that has responded is not tried again', async (t) => {
  const { attempts, answer, ask, router } = open({ first: DECOUPLED })
  const ended = failure(ask())
  answer(attempts[0], { final: false })
  attempts[0]?.sink.fail(UNAVAILABLE, 'no')
  // The result of its response comes before its failure.
  answer(attempts[1])
  t.match(await ended, { reason: 'STEP_UNAVAILABLE', details: { step: 'first', attempt: '1' } })
  t.same(numbers(attempts), ['first 1', 'second 1'])
  t.equal(router.memory.count, 0)
})

await t.test('attempts are counted over the responses of a decoupled step', async (t) => {
  const { attempts, answer, ask } = open({ first: DECOUPLED })
  const answered = collect(ask())
  answer(attempts[0], { final: false })
  answer(attempts[0], { index: 1 })
  attempts[1]?.sink.fail(UNAVAILABLE, 'no')
  t.same(numbers(attempts), ['first 1', 'second 1', 'second 2', 'second 3'])
  answer(attempts[3])
  answer(attempts[2])
  t.equal((await answered).length, 2)
})

await t.test('the times of failed attempts count for the ensemble', async (t) => {
  const { attempts, router, answer, ask } = open()
  const answered = collect(ask())
  attempts[0]?.sink.fail(UNAVAILABLE, 'no', TIMES)
  answer(attempts[1])
  answer(attempts[2])
  await answered
  const [statistics] = await router.statistics('e', '')
  t.same([statistics?.queue.ns, statistics?.computeInfer.ns], [3n, 9n])
})

await t.test('a step keeps its slot over its attempts', async (t) => {
  const ensembles = {
    e: chain('first', 'second').replace(
      'ensemble_scheduling {',
      'ensemble_scheduling { max_inflight_requests: 1 ',
    ),
  }
  const { clock, attempts, answer, ask, failTwice, router } = open({ ensembles })
  const [one, two] = [collect(ask()), collect(ask())]
  failTwice()
  t.same(numbers(attempts), ['first 1', 'first 2'], 'the second request waits')
  clock.advance(10)
  await settle()
  answer(attempts[2])
  t.same(numbers(attempts).slice(2).toSorted(), ['first 1', 'first 3', 'second 1'])
  const left = attempts.slice(3)
  for (const attempt of left) answer(attempt)
  answer(attempts[5])
  await Promise.all([one, two])
  t.equal(router.memory.count, 0)
})
