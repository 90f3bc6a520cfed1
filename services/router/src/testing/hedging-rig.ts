import { createManualClock } from '@tutti/chassis/testing'
import type { ExecuteOptions, NamedTensor, ResponseSink } from '@tutti/tensor'
import { Lender, RecordedResponses } from '@tutti/tensor/testing'
import { revisionKey } from '@tutti/transport'
import { ReplicaExecutors } from './replica-executors.ts'
import { chain, floats, oneToOne, quiet, request } from './requests.ts'
import { testRouter, toConfig } from './test-router.ts'

/** An attempt at a replica, which a test ends. */
export interface HedgedAttempt {
  readonly replica: string
  readonly number: number | undefined
  readonly isCancelled: boolean
  readonly inputs: readonly NamedTensor[]
  /** Answers with that number. */
  answer(value: number): void
  fail: ResponseSink['fail']
}

/** A router over replicas of `m`, and the ensemble `e` of one step, which is hedged after 50 ms. */
export function createHedgingRig(
  o: { readonly replicas?: readonly string[]; readonly maxPercent?: number } = {},
) {
  const { replicas: names = ['a', 'b'], maxPercent = 100 } = o
  const clock = createManualClock()
  const lender = new Lender()
  const attempts: HedgedAttempt[] = []
  const replicas = new ReplicaExecutors()
  const { router, directory, metrics } = testRouter({
    replicas,
    clock,
    ensembles: { e: chain('m') },
    beyond: { e: { steps: [{ name: 'only', hedge: { afterMs: 50, maxPercent } }] } },
  })
  const versions = [{ version: 1, revision: 'r', state: 'READY' as const, reason: '' }]
  const models = [{ name: 'm', config: toConfig('m', oneToOne), labels: {}, versions, reason: '' }]
  for (const replica of names) {
    replicas.set(replica, () => ({
      execute: ({ inputs }, sink, options) =>
        void attempts.push(toAttempt({ replica, inputs, sink, options })),
    }))
    router.view.describe({ replica, models }, { statistics: async () => [] })
  }
  const key = revisionKey({ model: 'm', version: 1, revision: 'r' })
  return {
    clock,
    attempts,
    router,
    lender,
    /** How many second replicas were asked, and how many of them have won. */
    hedges: async () => {
      const text = await metrics.render()
      const labels = '{ensemble="e",step="only",model="m"}'
      return ['tutti_step_hedges_total', 'tutti_step_hedges_won_total'].map((name) =>
        Number(text.split(`${name}${labels} `)[1]?.split('\n')[0]),
      )
    },
    /** Requests in flight, and work, at all replicas. */
    get outstanding() {
      const members = directory.places.byRevision.get(key) ?? []
      return members.reduce((sum, { inFlight, workUs }) => sum + inFlight + workUs, 0)
    },
    /** Asks `e` with an input that is lent until the answer is there. */
    ask: (context: ExecuteOptions = quiet) => {
      const own = request('IN', [1])
      const { tensors, retain, end } = lender.lend(own.inputs)
      const sink = new RecordedResponses()
      const passed: ResponseSink = {
        send: (response) => {
          sink.send(response)
          end()
        },
        fail: (error, executed, times) => {
          sink.fail(error, executed, times)
          end()
        },
      }
      router.resolve('e', '').execute({ ...own, inputs: tensors, retain }, passed, context)
      return sink
    },
  }
}

function toAttempt(o: {
  readonly replica: string
  readonly inputs: readonly NamedTensor[]
  readonly sink: ResponseSink
  readonly options: ExecuteOptions
}): HedgedAttempt {
  const { replica, inputs, sink, options } = o
  return {
    replica,
    number: options.origin?.attempt,
    inputs,
    get isCancelled() {
      return options.signal.aborted
    },
    answer: (value) => {
      const times = { ...NO_TIMES, computeInferNs: 1e6 }
      const outputs = [floats('Y', [value])]
      sink.send({ index: 0, final: true, outputs, parameters: new Map(), times })
    },
    fail: (...failure) => sink.fail(...failure),
  }
}

const NO_TIMES = { queueNs: 0, computeInputNs: 0, computeOutputNs: 0, transferNs: 0 }
