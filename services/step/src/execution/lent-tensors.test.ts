import { ServeError } from '@tutti/errors'
import type { NamedTensor, ResponseSink } from '@tutti/tensor'
import { Lender } from '@tutti/tensor/testing'
import t from 'tap'
import { createSchedulerRig, dynamicBatching, scriptedConfig } from '../testing/scheduler-rig.ts'
import { batchRequest } from '../testing/step-builders.ts'

const output = (value: number): NamedTensor => {
  return { name: 'y', datatype: 'FP32', shape: [1, 4], data: new Uint8Array(16).fill(value) }
}

/** A sink that reads what it gets at once. */
function reading() {
  const seen: (number | string | undefined)[] = []
  const sink: ResponseSink = {
    send: ({ outputs }) => void seen.push(outputs[0]?.data[0]),
    fail: ({ reason }) => void seen.push(reason),
  }
  return { seen, sink }
}

/** A scheduler whose requests and whose engine's responses are lent. */
function open(...o: Parameters<typeof createSchedulerRig>) {
  const rig = createSchedulerRig(...o)
  const lender = new Lender()
  const submit = () => {
    const { tensors, retain, end } = lender.lend([output(7)])
    const inputs = tensors.map((tensor) => ({ ...tensor, name: 'x' }))
    const cancel = new AbortController()
    const { seen, sink } = reading()
    const request = { ...batchRequest(), inputs, retain }
    rig.scheduler.execute(request, sink, { signal: cancel.signal })
    return { seen, end, inputs, cancel: () => cancel.abort(new ServeError('CANCELLED', 'gone')) }
  }
  const respond = (execution: number, value: number): void => {
    const { tensors, retain, end } = lender.lend([output(value)])
    rig.model.at(execution).send(0, { outputs: tensors, retain })
    end()
  }
  return { ...rig, lender, submit, respond }
}

await t.test(
  'a response that is lent lasts until the times of its execution are known',
  async (t) => {
    const { model, lender, submit, respond } = open()
    const { seen, end } = submit()
    respond(0, 9)
    t.same(seen, [])
    model.at(0).end()
    await new Promise(setImmediate)
    end()
    t.same(seen, [9])
    t.equal(lender.open, 0)
  },
)

await t.test('and until it is its turn', async (t) => {
  const config = scriptedConfig({
    dynamic_batching: dynamicBatching({ preferred_batch_size: [1], preserve_ordering: true }),
    max_batch_size: 1,
  })
  const { model, lender, submit, respond } = open({ config, instances: 2 })
  const [first, second] = [submit(), submit()]
  await model.begun(2)
  respond(1, 8)
  model.at(1).end()
  await new Promise(setImmediate)
  t.same(second.seen, [], 'the first request has not been answered')
  respond(0, 9)
  model.at(0).end()
  await new Promise(setImmediate)
  t.same([first.seen, second.seen], [[9], [8]])
  for (const { end } of [first, second]) end()
  t.equal(lender.open, 0)
})

await t.test('an abandoned execution keeps the inputs that it reads', async (t) => {
  const { model, lender, submit, respond } = open()
  const { seen, end, inputs, cancel } = submit()
  cancel()
  t.same(seen, ['CANCELLED'])
  end()
  t.equal(inputs[0]?.data[0], 7, 'the engine may still read them')
  respond(0, 9)
  model.at(0).end()
  await new Promise(setImmediate)
  t.equal(lender.open, 0)
  t.equal(inputs[0]?.data[0], 0xee)
})

await t.test('a request that is cancelled after its response gives both back', async (t) => {
  const { model, lender, submit, respond } = open()
  const { seen, end, cancel } = submit()
  respond(0, 9)
  cancel()
  end()
  t.same(seen, ['CANCELLED'])
  model.at(0).end()
  await new Promise(setImmediate)
  t.equal(lender.open, 0)
})

await t.test('an engine may read on after the last response of a decoupled model', async (t) => {
  const config = scriptedConfig({ model_transaction_policy: { decoupled: true } })
  const { model, lender, submit, respond } = open({ config })
  const { seen, end, inputs } = submit()
  respond(0, 9)
  t.same(seen, [9])
  end()
  t.equal(inputs[0]?.data[0], 7)
  model.at(0).end()
  await new Promise(setImmediate)
  t.equal(lender.open, 0)
})
