import { ServeError } from '@tutti/errors'
import type { NamedTensor } from '@tutti/tensor'
import { Lender } from '@tutti/tensor/testing'
import t from 'tap'
import { createSchedulerRig, dynamicBatching, scriptedConfig } from '../testing/scheduler-rig.ts'
import { batchRequest, floats, RecordingSink } from '../testing/step-builders.ts'
import { readSpareBytes } from './engine-memory.ts'

const decoupled = { model_transaction_policy: { decoupled: true } }

/** Lets everything run that waits for a promise. */
const settle = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

await t.test('what an engine sends after its execution has ended has no effect', async (t) => {
  for (const config of [scriptedConfig(), scriptedConfig(decoupled)]) {
    const { model, submit, statistics, lines } = createSchedulerRig({ config })
    const a = submit('a')
    model.at(0).end()
    await a.done
    const lender = new Lender()
    const { tensors, retain, end } = lender.lend([floats('y', [1, 4])])
    model.at(0).send(0, { final: false, outputs: tensors, retain })
    model.at(0).send(0, { outputs: tensors, retain })
    end()
    t.equal(lender.open, 0, 'it is not kept')
    t.match(a.outcome, /RESPONSE_INVALID/)
    t.equal(a.sink.responses.length, 1)
    const { success, fail } = statistics.snapshot()
    t.same([success.count, fail.count], [0n, 1n])
    t.match(lines, [/out of turn/, /out of turn/])
  }
})

await t.test('a reader may leave while it is given what waited for its turn', async (t) => {
  const config = scriptedConfig({
    ...decoupled,
    dynamic_batching: dynamicBatching({ preferred_batch_size: [1], preserve_ordering: true }),
  })
  const { model, submit, scheduler } = createSchedulerRig({ config, instances: 2 })
  const [a, b] = [submit('a'), submit('b')]
  await model.begun(2)
  const send = b.sink.send.bind(b.sink)
  b.sink.send = (response) => {
    send(response)
    b.cancel()
  }
  for (const index of [0, 1]) model.at(1).send(0, { index, final: false })
  model.at(0).finish()
  await a.done
  await b.done
  t.same([a.outcome, b.outcome], ['OK', 'CANCELLED CANCELLED'])
  t.equal(b.sink.responses.length, 2, 'the first of two, and the end')
  model.at(1).finish()
  await settle()
  t.same(scheduler.load, { inFlight: 0, queued: 0, freeSlots: 2 })
})

await t.test(
  'an engine hears that no caller waits, although one of them was answered',
  async (t) => {
    const config = scriptedConfig({ ...decoupled, dynamic_batching: dynamicBatching() })
    for (const isAnsweredFirst of [true, false]) {
      const { model, submit, scheduler } = createSchedulerRig({ config })
      const first = submit('x')
      const [a, b] = [submit('a'), submit('b')]
      model.at(0).finish()
      await first.done
      await model.begun(2)
      if (!isAnsweredFirst) b.cancel()
      model.at(1).send(0, {})
      await a.done
      if (isAnsweredFirst) {
        t.notOk(model.at(1).signal.aborted)
        b.cancel()
      }
      t.ok(model.at(1).signal.aborted)
      t.same(model.at(1).abandoned, [1])
      model.at(1).end()
      await settle()
      t.equal(scheduler.load.freeSlots, 1)
    }
  },
)

await t.test('an engine that was left by none is not told to stop', async (t) => {
  const { model, scheduler } = createSchedulerRig({ config: scriptedConfig(decoupled) })
  const sink = new RecordingSink()
  scheduler.execute(batchRequest(), sink, { signal: new AbortController().signal })
  model.at(0).send(0, {})
  await sink.all
  t.notOk(model.at(0).signal.aborted, 'it may have something to do after its last response')
  model.at(0).end()
  await settle()
  t.equal(scheduler.load.freeSlots, 1)
})

await t.test('executions that failed say nothing about how short a model is', async (t) => {
  const { model, submit } = createSchedulerRig({ openExecutions: 3 })
  const first = submit('a')
  const nothing = { computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0 }
  model.at(0).send(0, { error: new ServeError('INVALID_TENSOR_DATA', 'not UTF-8') })
  model.at(0).finish(nothing)
  await first.done
  await settle()
  for (const id of ['b', 'c', 'd']) submit(id)
  t.equal(model.executions.length, 2, 'one at a time, as long as nothing is known')
})

await t.test('very many requests that wait may be refused one after the other', async (t) => {
  const { model, submit, scheduler } = createSchedulerRig({ maxQueuedRequests: 5000 })
  const requests = Array.from({ length: 5000 }, (_, i) => submit(`${i}`))
  model.execute = () => {
    throw new ServeError('OVERLOADED', 'no memory')
  }
  model.at(0).finish()
  await Promise.all(requests.map(({ done }) => done))
  t.match(requests.at(-1)?.outcome, /OVERLOADED no memory/)
  await settle()
  t.same(scheduler.load, { inFlight: 0, queued: 0, freeSlots: 1 })
})

await t.test('a large execution that is over keeps no memory from the next one', async (t) => {
  const { model, submit } = createSchedulerRig()
  model.releasesFirst = true
  // More than half of what engines may take, were it there.
  const count = Math.floor((0.6 * readSpareBytes()) / 12)
  const x: NamedTensor = { name: 'x', datatype: 'FP32', shape: [1, count], data: new Uint8Array(0) }
  const requests = ['a', 'b'].map((id) => submit(id, { ...batchRequest({ id }), inputs: [x] }))
  model.at(0).finish()
  await requests[0]?.done
  t.equal(model.executions.length, 2)
  model.at(1).finish()
  await Promise.all(requests.map(({ done }) => done))
  t.same(
    requests.map(({ outcome }) => outcome),
    ['OK', 'OK'],
  )
})
