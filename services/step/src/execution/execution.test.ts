import { ServeError } from '@tutti/errors'
import t from 'tap'
import { createSchedulerRig, dynamicBatching, scriptedConfig } from '../testing/scheduler-rig.ts'
import { batchRequest, floats } from '../testing/step-builders.ts'

await t.test('faults of an engine end in an error, never in silence', async (t) => {
  const cases: readonly (readonly [
    string,
    (rig: ReturnType<typeof createSchedulerRig>) => void,
    string,
  ])[] = [
    ['rejects', ({ model }) => model.at(0).fail(new Error('boom')), 'INTERNAL ENGINE_FAILED boom'],
    [
      'rejects with a reason',
      ({ model }) => model.at(0).fail(new ServeError('ENGINE_STOPPED', 'gone')),
      'UNAVAILABLE ENGINE_STOPPED gone',
    ],
    [
      'ends without an answer',
      ({ model }) => model.at(0).end(),
      "INTERNAL RESPONSE_INVALID model 'm' ended its execution without a final response",
    ],
    [
      'returns what is not declared',
      ({ model }) => {
        model.at(0).send(0, { outputs: [floats('z', [1, 4])] })
        model.at(0).end()
      },
      "INVALID_ARGUMENT RESPONSE_INVALID unexpected inference output 'z' for model 'm'",
    ],
    [
      'answers with an error',
      ({ model }) => {
        model.at(0).send(0, { error: new ServeError('ENGINE_FAILED', 'bad input') })
        model.at(0).end()
      },
      'INTERNAL ENGINE_FAILED bad input',
    ],
  ]
  for (const [name, act, want] of cases) {
    const rig = createSchedulerRig()
    const a = rig.submit('a')
    act(rig)
    await a.done
    t.equal(a.outcome, want, name)
    t.equal(rig.statistics.failures('BACKEND'), 1, name)
    await new Promise(setImmediate)
    t.equal(rig.scheduler.load.freeSlots, 1, 'the instance is free again')
  }
})

await t.test(
  'outputs that differ from the configuration are passed on, and logged once',
  async (t) => {
    const { model, submit, lines } = createSchedulerRig()
    for (const [i, id] of ['a', 'b'].entries()) {
      const asked = submit(id)
      const execution = model.at(i)
      execution.send(0, { outputs: [floats('y', [1, 2, 2])] })
      execution.end()
      await asked.done
      t.match(asked.outputs, [{ name: 'y', shape: [1, 2, 2] }])
    }
    t.equal(lines.length, 1)
    t.match(JSON.parse(lines[0] ?? ''), {
      message: 'model output differs from the configuration',
      model: 'm',
      output: 'y',
      got: 'FP32 [1,2,2]',
    })
  },
)

await t.test(
  'an engine hears that its stream has ended with an output that is not declared',
  async (t) => {
    const config = scriptedConfig({ model_transaction_policy: { decoupled: true } })
    const { model, statistics, submit } = createSchedulerRig({ config })
    const a = submit('a')
    const execution = model.at(0)
    execution.send(0, { outputs: [floats('z', [1, 4])], final: false })
    await a.done
    t.match(a.outcome, /^INVALID_ARGUMENT RESPONSE_INVALID unexpected inference output 'z'/)
    t.equal(statistics.failures('BACKEND'), 1)
    t.ok(execution.signal.aborted)
    execution.end()
  },
)

await t.test('responses out of turn are not passed on', async (t) => {
  const { model, submit } = createSchedulerRig()
  const a = submit('a')
  model.at(0).send(0, { outputs: [floats('y', [1, 1])] })
  model.at(0).send(0, { outputs: [floats('y', [1, 2])] })
  model.at(0).end()
  await a.done
  t.equal(a.sink.responses.length, 1)
  t.same(a.outputs[0]?.shape, [1, 1])
})

await t.test(
  'a decoupled model streams, and its final response does not wait for the batch',
  async (t) => {
    const config = scriptedConfig({
      dynamic_batching: dynamicBatching(),
      model_transaction_policy: { decoupled: true },
    })
    const { model, submit, clock, statistics } = createSchedulerRig({ config })
    submit('x')
    const [a, b] = [submit('a'), submit('b')]
    model.at(0).finish()
    await model.begun(2)
    model.at(1).send(0, { final: false, outputs: [floats('y', [1, 1])] })
    model.at(1).send(0, { index: 1, final: false, outputs: [floats('y', [1, 1])] })
    t.equal(a.sink.responses.length, 2)
    clock.advance(2)
    // The engine says this of a request that it ends before the execution.
    const said = { queueNs: 0, computeInferNs: 0, transferNs: 0 }
    const times = { ...said, computeInputNs: 300_000, computeOutputNs: 200_000 }
    model.at(1).send(0, { index: 2, outputs: [], times })
    await a.done
    t.match(a.sink.responses[2], {
      index: 2,
      final: true,
      times: { computeInputNs: 300_000, computeInferNs: 1_500_000, computeOutputNs: 200_000 },
    })
    const { computeInput, computeOutput } = statistics.snapshot()
    t.same([computeInput.ns, computeOutput.ns], [300_000n, 200_000n])
    model.at(1).send(1, { final: false, outputs: [floats('nope', [1, 1])] })
    await b.done
    t.match(b.sink.responses[0], { final: true, error: { reason: 'RESPONSE_INVALID' } })
    model.at(1).end()
    await new Promise(setImmediate)
    t.equal(statistics.snapshot().success.count, 2n)
    t.equal(b.sink.responses.length, 1)
  },
)

await t.test('only requested outputs come back, in the declared shape', async (t) => {
  const [output] = scriptedConfig().output
  const config = scriptedConfig({
    output: output
      ? [
          { ...output, reshape: { shape: [-1, 1] } },
          { ...output, name: 'z' },
        ]
      : [],
  })
  const { model, submit } = createSchedulerRig({ config })
  const a = submit('a', { ...batchRequest(), requestedOutputs: ['y'] })
  model.at(0).send(0, { outputs: [floats('y', [1, 4, 1]), floats('z', [1, 4])] })
  model.at(0).end()
  await a.done
  t.same(
    a.outputs.map(({ name, shape }) => [name, shape]),
    [['y', [1, 4]]],
  )
})
