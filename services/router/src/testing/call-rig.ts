import { createManualClock } from '@tutti/chassis/testing'
import type { CallRules } from '@tutti/graph'
import {
  type ExecuteOptions,
  elementCount,
  type NamedTensor,
  type ResponseSink,
} from '@tutti/tensor'
import { Lender, RecordedResponses } from '@tutti/tensor/testing'
import { revisionKey } from '@tutti/transport'
import { ReplicaExecutors } from './replica-executors.ts'
import { chain, floats, oneToOne, quiet, request } from './requests.ts'
import { testRouter, toConfig } from './test-router.ts'

/** An attempt at a replica, which a test ends. */
export interface CallAttempt {
  readonly model: string
  readonly replica: string
  readonly number: number | undefined
  readonly isCancelled: boolean
  readonly inputs: readonly NamedTensor[]
  readonly options: ExecuteOptions
  /** Answers with that number, in each row of a batch if `shape` has them. */
  answer(value: number, isFinal?: boolean, shape?: readonly number[]): void
  fail: ResponseSink['fail']
}

export interface CallRigOptions
  extends Omit<Partial<Parameters<typeof testRouter>[0]>, 'replicas'> {
  /** Names of the replicas, each of which serves all models. */
  readonly replicas?: readonly string[]
  /** Configurations of the models; `m` with one input and one output by default. */
  readonly models?: Readonly<Record<string, string>>
}

/** A router over replicas whose attempts a test ends, with ensembles. */
export function createCallRig(o: CallRigOptions = {}) {
  const { replicas: names = ['a', 'b'], models: configs = { m: oneToOne }, ...rest } = o
  const clock = createManualClock()
  const lender = new Lender()
  const attempts: CallAttempt[] = []
  const replicas = new ReplicaExecutors()
  const { router, directory, metrics } = testRouter({ clock, ...rest, replicas })
  const versions = [{ version: 1, revision: 'r', state: 'READY' as const, reason: '' }]
  const models = Object.entries(configs).map(([name, text]) => {
    return { name, config: toConfig(name, text), labels: {}, versions, reason: '' }
  })
  for (const replica of names) {
    replicas.set(replica, ({ model }) => ({
      execute: ({ inputs }, sink, options) =>
        void attempts.push(toAttempt({ model, replica, inputs, sink, options })),
    }))
    router.view.describe({ replica, models }, { statistics: async () => [] })
  }
  const keys = Object.keys(configs).map((model) =>
    revisionKey({ model, version: 1, revision: 'r' }),
  )
  return {
    clock,
    attempts,
    router,
    lender,
    metrics,
    /** Lists the models of these names as a replica describes them. */
    described: (wanted: readonly string[]) => models.filter(({ name }) => wanted.includes(name)),
    /** Requests in flight, and work, at all replicas. */
    get outstanding() {
      const members = keys.flatMap((key) => directory.places.byRevision.get(key) ?? [])
      return members.reduce((sum, { inFlight, workUs }) => sum + inFlight + workUs, 0)
    },
    /** Counts of all that is left of requests: 0, once all have ended. */
    get left() {
      return [this.outstanding, lender.open, router.memory.count, clock.pending]
    },
    /** Asks an ensemble, `e` by default, with an input that is lent until the answer is there. */
    ask: (
      context: ExecuteOptions = quiet,
      ensemble = 'e',
      { rows }: { readonly rows?: number } = {},
    ) => {
      const plain = request('IN', Array<number>(rows ?? 1).fill(1))
      const inputs = plain.inputs.map((one) =>
        rows === undefined ? one : { ...one, shape: [rows, 1] },
      )
      const own = { ...plain, inputs }
      const { tensors, retain, end } = lender.lend(own.inputs)
      const sink = new RecordedResponses()
      const passed: ResponseSink = {
        send: (response) => {
          sink.send(response)
          if (response.final) end()
        },
        fail: (error, executed, times) => {
          sink.fail(error, executed, times)
          end()
        },
      }
      const asked = { ...own, inputs: tensors, retain }
      router.resolve(ensemble, '').execute(asked, passed, context)
      return sink
    },
    /** Returns the values of metrics, in the order of their names, for the step `only` that runs `m`. */
    counts: async (...families: readonly string[]) => {
      const text = await metrics.render()
      const labels = '{ensemble="e",step="only",model="m"}'
      return families.map((name) => Number(text.split(`${name}${labels} `)[1]?.split('\n')[0]))
    },
  }
}

/** A rig whose ensemble `e` has one step `only`, which runs `m` under the rules. */
export function createStepRig(call: CallRules, o: CallRigOptions = {}) {
  return createCallRig({
    ensembles: { e: chain('m') },
    beyond: { e: { steps: [{ name: 'only', call }] } },
    ...o,
  })
}

function toAttempt(o: {
  readonly model: string
  readonly replica: string
  readonly inputs: readonly NamedTensor[]
  readonly sink: ResponseSink
  readonly options: ExecuteOptions
}): CallAttempt {
  const { model, replica, inputs, sink, options } = o
  let index = 0
  return {
    model,
    replica,
    number: options.origin?.attempt,
    inputs,
    options,
    get isCancelled() {
      return options.signal.aborted
    },
    answer: (value, final = true, shape = [1]) => {
      const times = { ...NO_TIMES, computeInferNs: 1e6 }
      const outputs = [floats('Y', Array<number>(elementCount(shape)).fill(value), shape)]
      sink.send({ index: index++, final, outputs, parameters: new Map(), times })
    },
    fail: (...failure) => sink.fail(...failure),
  }
}

const NO_TIMES = { queueNs: 0, computeInputNs: 0, computeOutputNs: 0, transferNs: 0 }
