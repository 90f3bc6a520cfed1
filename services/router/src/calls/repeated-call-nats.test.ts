// needs: nats
import { openCallScope, systemClock } from '@tutti/chassis'
import { until, withoutNatsServer } from '@tutti/chassis/testing'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { Executor, NamedTensor } from '@tutti/tensor'
import { collect, responsesTo } from '@tutti/tensor/testing'
import t, { type Test } from 'tap'
import {
  failure,
  floats,
  openNatsRouter,
  quiet,
  request,
  step,
  toFloats,
} from '../testing/index.ts'

const SKIP = withoutNatsServer()
const MODEL = `platform: "onnxruntime_onnx" max_batch_size: 4
  input { name: "X" data_type: TYPE_FP32 dims: [ -1 ] }
  output { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] }`
const IO = `platform: "ensemble"
  input { name: "IN" data_type: TYPE_FP32 dims: [ -1, -1 ] }
  output { name: "OUT" data_type: TYPE_FP32 dims: [ -1, -1 ] }`
const TIMES = {
  queueNs: 1,
  computeInputNs: 1,
  computeInferNs: 1,
  computeOutputNs: 1,
  transferNs: 0,
}

/** Adds one to each value. Stalls at the item that begins with `stallsAt`, and fails at that with `failsAt`. */
class Replica {
  readonly shapes: (readonly number[])[] = []
  readonly stalled: CancelSignal[] = []
  cancelled = 0
  stallsAt = Number.NaN
  failsAt = Number.NaN

  readonly executor = (): Executor => ({
    execute: ({ inputs }, sink, { signal }) => {
      const { shape, data } = inputs[0] as NamedTensor
      this.shapes.push(shape)
      const values = [...toFloats(data)]
      if (values.includes(this.failsAt)) {
        return sink.fail(new ServeError('ENGINE_FAILED', 'it broke'), 'maybe')
      }
      if (values.includes(this.stallsAt)) {
        this.stalled.push(signal)
        signal.addEventListener('abort', () => {
          this.cancelled += 1
          sink.fail(new ServeError('CANCELLED', 'stopped'), 'maybe')
        })
        return
      }
      const outputs = [
        floats(
          'Y',
          values.map((value) => value + 1),
          shape,
        ),
      ]
      sink.send({ index: 0, final: true, outputs, parameters: new Map(), times: TIMES })
    },
  })
}

/** Two replicas of `m` on a broker, and a router with an ensemble that runs it for each item, and one that repeats it. */
async function open(t: Test) {
  const scheduling = `${IO} ensemble_scheduling { ${step('m', 'IN', 'OUT')} }`
  const forEach = { items: ['X'], maxItems: 64, maxParallel: 4, gather: 'Stack' } as const
  const loop = { carry: [{ input: 'X', output: 'Y' }], reads: [], maxIterations: 5 }
  const { router, members, openReplica } = await openNatsRouter(t, {
    ensembles: { each: scheduling, again: scheduling },
    beyond: {
      each: { steps: [{ name: 'read', forEach }] },
      again: { steps: [{ name: 'read', loop }] },
    },
  })
  const replicas = [new Replica(), new Replica()] as const
  for (const [i, { executor }] of replicas.entries())
    await openReplica(`step-${i}`, executor, MODEL)
  await until('both replicas are there', () => members().length === 2)
  const ask = (ensemble: string, rows: number, width: number, context: Context = quiet) => {
    const values = Array.from({ length: rows * width }, (_, i) => Math.floor(i / width))
    const asked = request('IN', values, { inputs: [floats('IN', values, [rows, width])] })
    return collect(responsesTo(router.resolve(ensemble, ''), asked, context))
  }
  return { router, replicas, ask, members }
}

type Context = Parameters<typeof responsesTo>[2]

/** Waits until nothing is in flight, and nothing is held. */
async function settled({ router, members }: Awaited<ReturnType<typeof open>>): Promise<void> {
  await until('nothing is in flight', () => members().every((one) => one.inFlight === 0))
  await until('nothing is held', () => router.memory.count === 0)
}

await t.test('items go to all replicas in batches, small and large', { skip: SKIP }, async (t) => {
  const rig = await open(t)
  for (const [rows, width] of [
    [0, 2],
    [1, 2],
    [10, 2],
    [64, 2],
    [10, 100_000],
  ] as const) {
    const before = rig.replicas.flatMap(({ shapes }) => shapes).length
    const [answer] = await rig.ask('each', rows, width)
    const [output] = answer?.outputs ?? []
    t.same(output?.shape, [rows, rows === 0 ? 0 : width])
    const got = toFloats(output?.data)
    t.ok(got.every((value, i) => value === Math.floor(i / width) + 1))
    t.equal(got.length, rows * width)
    const made = rig.replicas.flatMap(({ shapes }) => shapes).length - before
    t.equal(made, Math.ceil(rows / 4))
  }
  t.ok(rig.replicas.every(({ shapes }) => shapes.length > 0))
  await settled(rig)
})

await t.test('an item that fails cancels the others where they are', { skip: SKIP }, async (t) => {
  const rig = await open(t)
  for (const replica of rig.replicas) Object.assign(replica, { stallsAt: 1, failsAt: 9 })
  const error = await failure(rig.ask('each', 12, 2))
  t.match(error, {
    reason: 'ENGINE_FAILED',
    message: "in ensemble 'each', step 'read[8..11]': it broke",
    details: { ensemble: 'each', step: 'read', item: '8..11', model: 'm' },
  })
  const stalled = () => rig.replicas.flatMap((replica) => replica.stalled)
  await until('the other one is cancelled', () => stalled().every(({ aborted }) => aborted))
  await settled(rig)
})

await t.test('a deadline ends a map in the middle', { skip: SKIP }, async (t) => {
  const rig = await open(t)
  for (const replica of rig.replicas) replica.stallsAt = 5
  const scope = openCallScope({ clock: systemClock, remainingMs: 200 })
  t.teardown(() => scope.close())
  const error = await failure(rig.ask('each', 12, 2, scope.context))
  t.equal(error.reason, 'DEADLINE_EXCEEDED')
  await until('it was cancelled', () => rig.replicas.some(({ cancelled }) => cancelled === 1))
  await settled(rig)
})

await t.test('a loop hands on what a replica made to the next one', { skip: SKIP }, async (t) => {
  const rig = await open(t)
  for (const width of [2, 200_000]) {
    const [answer] = await rig.ask('again', 3, width)
    const [output] = answer?.outputs ?? []
    t.same(output?.shape, [3, width])
    t.ok(toFloats(output?.data).every((value, i) => value === Math.floor(i / width) + 5))
  }
  t.equal(rig.replicas.flatMap(({ shapes }) => shapes).length, 10)
  await settled(rig)
})
