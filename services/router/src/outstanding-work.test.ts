import { ServeError } from '@tutti/errors'
import type { ExecuteOptions, ResponseSink } from '@tutti/tensor'
import { responsesTo } from '@tutti/tensor/testing'
import { revisionKey } from '@tutti/transport'
import t from 'tap'
import {
  collect,
  failure,
  floats,
  oneToOne,
  quiet,
  ReplicaExecutors,
  request,
  testRouter,
  toConfig,
} from './testing/index.ts'

interface Attempt {
  readonly replica: string
  readonly sink: ResponseSink
  readonly options: ExecuteOptions
}

/** A router over two replicas of `m`, whose attempts a test ends. */
function open() {
  const attempts: Attempt[] = []
  const replicas = new ReplicaExecutors()
  const versions = [{ version: 1, revision: 'r', state: 'READY' as const, reason: '' }]
  const models = [{ name: 'm', config: toConfig('m', oneToOne), labels: {}, versions, reason: '' }]
  const { router, directory } = testRouter({ replicas })
  for (const replica of ['a', 'b']) {
    replicas.set(replica, () => ({
      execute: (_request, sink, options) => void attempts.push({ replica, sink, options }),
    }))
    router.view.describe({ replica, models }, { statistics: async () => [] })
  }
  const key = revisionKey({ model: 'm', version: 1, revision: 'r' })
  const outstanding = () =>
    (directory.places.byRevision.get(key) ?? []).map(({ inFlight, workUs }) => [inFlight, workUs])
  const ask = (length: number, context: ExecuteOptions = quiet) =>
    responsesTo(router.resolve('m', ''), request('X', Array(length).fill(1)), context)
  const answer = (attempt: Attempt | undefined, ms: number): void => {
    const none = { queueNs: 0, computeInputNs: 0, computeOutputNs: 0, transferNs: 0 }
    const times = { ...none, computeInferNs: ms * 1e6 }
    const outputs = [floats('Y', [1])]
    attempt?.sink.send({ index: 0, final: true, outputs, parameters: new Map(), times })
  }
  return { attempts, outstanding, ask, answer }
}

await t.test('small requests do not follow a large one, and work is given back', async (t) => {
  const { attempts, outstanding, ask, answer } = open()
  for (let i = 0; i < 8; i += 1) {
    for (const [length, ms] of [
      [1, 1],
      [1000, 100],
    ] as const) {
      const answered = collect(ask(length))
      answer(attempts.at(-1), ms)
      await answered
    }
  }
  t.same(outstanding(), [
    [0, 0],
    [0, 0],
  ])
  attempts.length = 0
  const large = collect(ask(1000))
  const small = [1, 2, 3, 4].map(() => collect(ask(1)))
  const [first, ...others] = attempts.map(({ replica }) => replica)
  t.notOk(others.includes(first ?? ''), 'four of 1 ms are less than one of 100')
  for (const attempt of attempts) answer(attempt, 1)
  await Promise.all([large, ...small])
  t.same(outstanding().flat(), [0, 0, 0, 0])
})

await t.test(
  'work is given back by attempts that fail, also those that are tried again',
  async (t) => {
    const { attempts, outstanding, ask } = open()
    const failed = failure(ask(1))
    attempts[0]?.sink.fail(new ServeError('STEP_UNAVAILABLE', 'gone'), 'no')
    t.not(attempts[1]?.replica, attempts[0]?.replica)
    attempts[1]?.sink.fail(new ServeError('INTERNAL', 'broken'), 'maybe')
    t.match(await failed, { reason: 'INTERNAL' })
    t.same(outstanding().flat(), [0, 0, 0, 0])
  },
)
