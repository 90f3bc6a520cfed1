// needs: nats
import { until, withoutNatsServer } from '@tutti/chassis/testing'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { Executor } from '@tutti/tensor'
import { collect, responsesTo } from '@tutti/tensor/testing'
import t, { type Test } from 'tap'
import {
  chain,
  floats,
  oneToOne,
  openNatsRouter,
  quiet,
  request,
  toFloats,
} from '../testing/index.ts'

const SKIP = withoutNatsServer()
const LARGE = 300_000

/** Gives each value back, with the replica's own number added. Stalls while the switch says so. */
class Replica {
  isStalled = false
  executions = 0
  readonly cancelled: CancelSignal[] = []
  readonly #add: number

  constructor(add: number) {
    this.#add = add
  }

  readonly executor = (): Executor => ({
    execute: ({ inputs }, sink, { signal }) => {
      this.executions += 1
      if (this.isStalled) {
        signal.addEventListener('abort', () => {
          this.cancelled.push(signal)
          sink.fail(new ServeError('CANCELLED', 'stopped'), 'maybe')
        })
        return
      }
      const values = [...toFloats(inputs[0]?.data)].map((value) => value + this.#add)
      const outputs = [floats('Y', values)]
      sink.send({ index: 0, final: true, outputs, parameters: new Map(), times: TIMES })
    },
  })
}

const TIMES = {
  queueNs: 1,
  computeInputNs: 1,
  computeInferNs: 1,
  computeOutputNs: 1,
  transferNs: 0,
}

/** Two replicas of `m` on a broker, and a router with the ensemble `e`, which is hedged after 20 ms. */
async function open(t: Test) {
  const { router, members, openReplica } = await openNatsRouter(t, {
    ensembles: { e: chain('m') },
    beyond: {
      e: {
        steps: [
          { name: 's', call: { hedge: { afterMs: 20, maxPercent: 100 }, mayRunTwice: true } },
        ],
      },
    },
  })
  const replicas = [new Replica(10), new Replica(20)]
  for (const [i, { executor }] of replicas.entries())
    await openReplica(`step-${i}`, executor, oneToOne)
  await until('both replicas are there', () => members().length === 2)
  const ask = async (length = 1): Promise<number | undefined> => {
    const values = Array(length).fill(1)
    const [answer] = await collect(
      responsesTo(router.resolve('e', ''), request('IN', values), quiet),
    )
    const got = toFloats(answer?.outputs[0]?.data)
    t.equal(got.length, length)
    t.ok(
      got.every((value) => value === got[0]),
      'the answer is that of one replica',
    )
    return got[0]
  }
  return { router, replicas, ask, members }
}

await t.test(
  'a replica that stalls costs the hedge time and no answer',
  { skip: SKIP },
  async (t) => {
    const { router, replicas, ask, members } = await open(t)
    const [stalled, other] = replicas
    if (stalled === undefined || other === undefined) throw new Error('two are there')
    stalled.isStalled = true
    for (const length of [1, LARGE]) {
      for (let i = 0; i < 8; i += 1) t.equal(await ask(length), 21)
    }
    t.ok(stalled.executions > 0, 'it was asked too')
    await until('it has heard of each end', () => stalled.cancelled.length === stalled.executions)
    stalled.isStalled = false
    other.isStalled = true
    for (let i = 0; i < 4; i += 1) t.equal(await ask(), 11)
    await until('nothing is in flight', () => members().every((one) => one.inFlight === 0))
    t.same(
      members().map(({ workUs }) => workUs),
      [0, 0],
    )
    t.equal(router.memory.count, 0)
  },
)

await t.test(
  'two quick replicas answer each request once, whichever is first',
  { skip: SKIP },
  async (t) => {
    const { replicas, ask, members } = await open(t)
    const answers = await Promise.all(Array.from({ length: 200 }, () => ask(64)))
    t.ok(answers.every((value) => value === 11 || value === 21))
    const executions = replicas.reduce((sum, one) => sum + one.executions, 0)
    t.ok(executions >= 200 && executions <= 400, String(executions))
    await until('nothing is in flight', () => members().every((one) => one.inFlight === 0))
  },
)
