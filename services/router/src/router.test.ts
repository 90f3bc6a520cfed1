import { type CancelSignal, ServeError } from '@tutti/errors'
import { StatisticsRecorder } from '@tutti/telemetry'
import type { StepResponse } from '@tutti/tensor'
import { responsesTo } from '@tutti/tensor/testing'
import t from 'tap'
import {
  chain,
  collect,
  ensembleIo,
  failure,
  floats,
  oneToOne,
  quiet,
  request,
  type ScriptedModel,
  scriptedRouter,
  settle,
  step,
  toFloats,
} from './testing/index.ts'

function mapping(apply: (x: number) => number): ScriptedModel {
  return {
    config: oneToOne,
    run: (inputs) => new Map([['Y', floats('Y', [...(inputs.get('X') ?? [])].map(apply))]]),
  }
}

function thrown(call: () => unknown): unknown {
  try {
    return call()
  } catch (error) {
    return error
  }
}

await t.test(
  'a request to a model passes through, under the version that was resolved',
  async (t) => {
    const { router, envelopes } = await scriptedRouter({
      models: { plus: { ...mapping((x) => x + 1), versions: [1, 3] } },
    })
    const [response] = await collect(
      responsesTo(router.resolve('plus', ''), request('X', [1, 2]), quiet),
    )
    t.match(response, { final: true })
    t.match(router.resolve('plus', ''), { name: 'plus', version: 3 })
    t.same([...toFloats(response?.outputs[0]?.data)], [2, 3])
    t.match(envelopes[0], {
      model: 'plus',
      version: 3,
      revision: 'revision-3',
      step: '',
      attempt: 1,
    })
    t.equal(router.memory.count, 0)
  },
)

await t.test('look-ups answer with Triton’s texts', async (t) => {
  const { router } = await scriptedRouter({
    models: {
      good: mapping((x) => x),
      bad: { config: oneToOne, loadError: 'Internal: no such file' },
    },
  })
  const cases = [
    ['none', '', 'MODEL_NOT_FOUND', "Request for unknown model: 'none' is not found"],
    ['good', '7', 'MODEL_NOT_FOUND', "Request for unknown model: 'good' version 7 is not found"],
    ['bad', '', 'MODEL_NOT_FOUND', "Request for unknown model: 'bad' has no available versions"],
    [
      'bad',
      '1',
      'MODEL_NOT_READY',
      "Request for unknown model: 'bad' version 1 is not at ready state",
    ],
  ] as const
  for (const [name, version, reason, message] of cases) {
    t.match(
      thrown(() => router.resolve(name, version)),
      { reason, message },
    )
    t.equal(await router.isModelReady(name, version), false)
  }
  t.equal(await router.isModelReady('good', ''), true)
  const refused: unknown = await router.isModelReady('good', 'x').catch((e: unknown) => e)
  t.match(refused, { reason: 'INVALID_VERSION' })
})

await t.test('an ensemble runs its steps, and nothing stays in memory', async (t) => {
  const { router, envelopes } = await scriptedRouter({
    models: { plus: mapping((x) => x + 1), twice: mapping((x) => x * 2) },
    ensembles: { ens: chain('plus', 'twice') },
  })
  const [response] = await collect(
    responsesTo(router.resolve('ens', ''), request('IN', [1, 2]), quiet),
  )
  t.match(response, { final: true })
  t.match(router.resolve('ens', ''), { name: 'ens', version: 1 })
  t.same([...toFloats(response?.outputs[0]?.data)], [4, 6])
  t.same(
    envelopes.map((e) => [e.model, e.step]),
    [
      ['plus', 'plus'],
      ['twice', 'twice'],
    ],
  )
  t.equal(envelopes[0]?.requestKey, envelopes[1]?.requestKey)
  t.equal(router.memory.bytesInUse, 0)
  const [statistics] = await router.statistics('ens', '')
  t.match(statistics, { name: 'ens', version: '1', inferenceCount: 1n, executionCount: 1n })
  t.equal(statistics?.computeInfer.ns, 6n)
})

await t.test('an ensemble that is a step of another one counts its own requests', async (t) => {
  const { router } = await scriptedRouter({
    models: { plus: mapping((x) => x + 1), twice: mapping((x) => x * 2) },
    ensembles: {
      inner: chain('plus', 'twice'),
      outer: `${ensembleIo} ensemble_scheduling { step { model_name: "inner" model_version: -1
        input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" } } }`,
    },
  })
  await collect(responsesTo(router.resolve('outer', ''), request('IN', [1]), quiet))
  for (const name of ['outer', 'inner']) {
    const [statistics] = await router.statistics(name, '')
    const once = { inferenceCount: 1n, executionCount: 1n, success: { count: 1n } }
    t.match(statistics, { name, ...once, computeInfer: { ns: 6n } })
  }
})

await t.test('a failing step ends the request with Triton’s prefix and says where', async (t) => {
  const { router } = await scriptedRouter({
    models: {
      plus: mapping((x) => x + 1),
      broken: {
        config: oneToOne,
        run: () => {
          throw new ServeError('ENGINE_FAILED', 'onnx runtime error 6: boom')
        },
      },
    },
    ensembles: {
      inner: chain('plus', 'broken'),
      outer: `${ensembleIo} ensemble_scheduling { ${step('plus', 'IN', 't')}
        step { model_name: "inner" model_version: -1
          input_map { key: "IN" value: "t" } output_map { key: "OUT" value: "OUT" } } }`,
    },
  })
  const error = await failure(responsesTo(router.resolve('inner', ''), request('IN', [1]), quiet))
  t.match(error, {
    code: 'INTERNAL',
    reason: 'ENGINE_FAILED',
    message: "in ensemble 'inner', onnx runtime error 6: boom",
    details: {
      ensemble: 'inner',
      step: 'broken',
      model: 'broken',
      replica: 'step-1',
      attempt: '1',
    },
  })
  const nested = await failure(responsesTo(router.resolve('outer', ''), request('IN', [1]), quiet))
  t.equal(
    nested.message,
    "in ensemble 'outer', in ensemble 'inner', onnx runtime error 6: boom (step 'broken', model 'broken')",
  )
  t.match(nested.details, { ensemble: 'inner', step: 'broken' })
  // Two for each failed request, also of one that is a step.
  t.match(await router.statistics('inner', ''), [{ fail: { count: 4n } }])
  t.equal(router.memory.count, 0)
})

for (const reason of ['CANCELLED', 'DEADLINE_EXCEEDED'] as const) {
  await t.test(
    `${reason} reaches the running step, starts nothing new and frees everything`,
    async (t) => {
      const started = Promise.withResolvers<CancelSignal>()
      const { router, envelopes } = await scriptedRouter({
        models: {
          plus: mapping((x) => x + 1),
          endless: {
            config: oneToOne,
            run: (_inputs, _envelope, signal) =>
              new Promise((_resolve, reject) => {
                signal.addEventListener('abort', () => reject(signal.reason))
                started.resolve(signal)
              }),
          },
        },
        ensembles: { ens: chain('plus', 'endless', 'plus') },
      })
      const cancel = new AbortController()
      const answer = failure(
        responsesTo(router.resolve('ens', ''), request('IN', [1]), { signal: cancel.signal }),
      )
      await started.promise
      cancel.abort(new ServeError(reason, 'gone'))
      t.match(await answer, { reason, message: "in ensemble 'ens', gone" })
      await settle()
      t.same(
        envelopes.map((e) => e.model),
        ['plus', 'endless'],
      )
      t.equal(router.memory.count, 0)
      t.match(await router.statistics('ens', ''), [{ fail: { count: 1n } }], 'nothing failed twice')
    },
  )
}

await t.test('a request keeps the versions that it was admitted with', async (t) => {
  const arrived = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  const { router, served, refresh, envelopes } = await scriptedRouter({
    models: {
      gate: {
        config: oneToOne,
        run: async (inputs) => {
          arrived.resolve()
          await go.promise
          return new Map([['Y', floats('Y', [...(inputs.get('X') ?? [])])]])
        },
      },
      plus: { ...mapping((x) => x + 1), versions: [1] },
    },
    ensembles: { ens: chain('gate', 'plus') },
  })
  const answer = collect(responsesTo(router.resolve('ens', ''), request('IN', [1]), quiet))
  await arrived.promise
  served.set('plus', { ...mapping((x) => x + 2), versions: [1, 2] })
  refresh()
  t.same(router.modelMetadata('plus', '').versions, ['1', '2'])
  go.resolve()
  await answer
  t.equal(envelopes.at(-1)?.version, 1)
})

await t.test(
  'max_inflight_requests bounds the open requests of a step over all requests',
  async (t) => {
    const waiting: (() => void)[] = []
    const { router, envelopes } = await scriptedRouter({
      models: {
        gate: {
          config: oneToOne,
          run: async (inputs) => {
            await new Promise<void>((resolve) => waiting.push(resolve))
            return new Map([['Y', floats('Y', [...(inputs.get('X') ?? [])])]])
          },
        },
      },
      ensembles: {
        ens: `${ensembleIo} ensemble_scheduling { max_inflight_requests: 1 ${step('gate', 'IN', 'OUT')} }`,
      },
    })
    const ask = (): Promise<StepResponse[]> =>
      collect(responsesTo(router.resolve('ens', ''), request('IN', [1]), quiet))
    const answers = [ask(), ask(), ask()]
    for (let done = 0; done < 3; done++) {
      while (waiting.length === 0) await settle()
      t.equal(envelopes.length, done + 1)
      waiting.pop()?.()
      await answers[done]
    }
  },
)

await t.test('a cancelled request leaves the line for a slot', async (t) => {
  const waiting: (() => void)[] = []
  const { router, envelopes } = await scriptedRouter({
    models: {
      gate: {
        config: oneToOne,
        run: async () => {
          await new Promise<void>((resolve) => waiting.push(resolve))
          return new Map([['Y', floats('Y', [1])]])
        },
      },
    },
    ensembles: {
      ens: `${ensembleIo} ensemble_scheduling { max_inflight_requests: 1 ${step('gate', 'IN', 'OUT')} }`,
    },
  })
  const cancel = new AbortController()
  const first = collect(responsesTo(router.resolve('ens', ''), request('IN', [1]), quiet))
  const second = failure(
    responsesTo(router.resolve('ens', ''), request('IN', [1]), { signal: cancel.signal }),
  )
  while (waiting.length === 0) await settle()
  cancel.abort(new ServeError('CANCELLED', 'gone'))
  t.match(await second, { reason: 'CANCELLED' })
  waiting.pop()?.()
  await first
  await settle()
  t.equal(envelopes.length, 1)
  t.equal(router.memory.count, 0)
})

await t.test(
  'what cannot be served is listed with its reason and does not hurt the rest',
  async (t) => {
    const { router } = await scriptedRouter({
      models: {
        plus: mapping((x) => x + 1),
        bad: { config: oneToOne, loadError: 'Internal: no such file' },
      },
      ensembles: {
        ens: chain('plus'),
        needsBad: chain('plus', 'bad'),
        needsNone: chain('none'),
        a: chain('b'),
        b: chain('a'),
      },
    })
    const index = await router.repositoryIndex(false)
    t.same(
      index.map((e) => [e.name, e.state]),
      [
        ['a', 'UNAVAILABLE'],
        ['b', 'UNAVAILABLE'],
        ['bad', 'UNAVAILABLE'],
        ['ens', 'READY'],
        ['needsBad', 'UNAVAILABLE'],
        ['needsNone', 'UNAVAILABLE'],
        ['plus', 'READY'],
      ],
    )
    const reason = new Map(index.map((e) => [e.name, e.reason]))
    t.match(reason.get('a'), /circular dependency between ensembles: /)
    t.match(
      reason.get('needsBad'),
      /ensemble 'needsBad' depends on 'bad' which has no loaded version\. Model 'bad' loading failed with error: version 1 is at UNAVAILABLE state: Internal: no such file;/,
    )
    t.match(
      reason.get('needsNone'),
      /ensemble needsNone contains models that are not available or ambiguous: none/,
    )
    t.same(
      (await router.repositoryIndex(true)).map((e) => e.name),
      ['ens', 'plus'],
    )
    t.equal(router.isReady(), false)
  },
)

await t.test(
  'statistics of an unknown model or version are refused with Triton’s texts',
  async (t) => {
    const { router } = await scriptedRouter({
      models: { plus: mapping((x) => x) },
      ensembles: { ens: chain('plus') },
    })
    await t.rejects(router.statistics('none', ''), {
      message: "requested model 'none' is not available",
    })
    await t.rejects(router.statistics('ens', '9'), {
      message: "requested model version is not available for model 'ens'",
    })
  },
)

await t.test('statistics of several models ask steps for no others', async (t) => {
  const models = Array.from({ length: 12 }, (_, i) => `m${i}`)
  const { router } = await scriptedRouter({
    models: Object.fromEntries(models.map((name) => [name, mapping((x) => x)])),
    ensembles: { ens: chain('m0', 'm1') },
  })
  const asked: string[] = []
  const statistics = async (name: string) => {
    asked.push(name)
    return models
      .filter((one) => name === '' || one === name)
      .map((one) => new StatisticsRecorder({ name: one, version: '1' }).snapshot())
  }
  const described = models.map((name) => ({ name, labels: {}, reason: '', versions: [] }))
  router.view.describe({ replica: 'step-1', models: described }, { statistics })
  const namesOf = async (...names: string[]) =>
    (await router.statisticsOf(new Set(names))).map(({ name }) => name)
  t.same(await namesOf('ens', 'm0', 'none'), ['m0', 'ens'])
  t.same(asked.splice(0), ['m0'], 'an ensemble is counted here')
  t.same(await namesOf(...models.slice(1)), models.slice(1))
  t.same(asked.splice(0), [''], 'all at once where there are many')
  router.view.describe(
    { replica: 'step-1', models: described },
    { statistics: () => Promise.reject(new ServeError('STEP_LOST', 'gone')) },
  )
  await t.rejects(router.statisticsOf(new Set(['m0'])), { message: 'gone' })
})

await t.test('a stopped router is neither live nor ready', async (t) => {
  const { router } = await scriptedRouter({ models: { plus: mapping((x) => x) } })
  t.same([router.isLive(), router.isReady()], [true, true])
  router.stop()
  t.same([router.isLive(), router.isReady()], [false, false])
})
