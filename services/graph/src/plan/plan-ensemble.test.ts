import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import t from 'tap'
import { readConfigGraph } from '../read/read-config.ts'
import { ensembleConfig, modelConfig, stepConfig } from '../testing/configs.ts'
import type { ComposingModel, EnsemblePlan } from './ensemble-plan.ts'
import { completeEnsembleConfig, planEnsemble } from './plan-ensemble.ts'

const DECOUPLED = { model_transaction_policy: { decoupled: true } }

function ready(config: ModelConfig, ...readyVersions: readonly number[]): ComposingModel {
  return { config, readyVersions: readyVersions.length === 0 ? [1] : readyVersions }
}

function models(...configs: readonly ModelConfig[]): Readonly<Record<string, ComposingModel>> {
  return Object.fromEntries(configs.map((config) => [config.name, ready(config)]))
}

function plan(
  config: ModelConfig,
  known: Readonly<Record<string, ComposingModel | undefined>>,
): EnsemblePlan {
  return planEnsemble({ config, graph: readConfigGraph(config), lookup: (name) => known[name] })
}

function refusal(
  config: ModelConfig,
  known: Readonly<Record<string, ComposingModel | undefined>>,
): ServeError | undefined {
  try {
    plan(config, known)
    return undefined
  } catch (error) {
    return ServeError.from(error)
  }
}

function mixed(model: string, meeting: string): string {
  return `in ensemble E, step of model '${model}' receives inputs originated from different decoupled models: ${meeting}`
}

const M = modelConfig({ name: 'M', input: [{ name: 'a' }], output: [{ name: 'b' }] })
const E = {
  name: 'E',
  input: [{ name: 'x' }],
  output: [{ name: 'y' }],
  steps: [stepConfig('M', { a: 'x' }, { b: 'y' })],
}
const TWO_STEPS = {
  ...E,
  steps: [stepConfig('M', { a: 'x' }, { b: 'mid' }), stepConfig('P', { a: 'mid' }, { b: 'y' })],
}

await t.test('what the composing models contradict gives the text of Triton', async (t) => {
  const table: readonly { config: ModelConfig; known: readonly ModelConfig[]; text: string }[] = [
    {
      config: ensembleConfig({ ...E, max_batch_size: 8 }),
      known: [{ ...M, max_batch_size: 4 }],
      text: 'ensemble E allows maximum batch size 8, but it contains model M which only allows maximum batch size to be 4',
    },
    {
      config: ensembleConfig({ ...E, steps: [stepConfig('M', { q: 'x' }, { b: 'y' })] }),
      known: [M],
      text: 'in ensemble E, ensemble tensor x is mapping to non-existing input q in model M',
    },
    {
      config: ensembleConfig(E),
      known: [modelConfig({ ...M, input: [{ name: 'a' }, { name: 'c' }] })],
      text: 'in ensemble E, input c in model M is not mapped to any ensemble tensors',
    },
    {
      config: ensembleConfig({ ...E, steps: [stepConfig('M', { a: 'x' }, { q: 'y' })] }),
      known: [M],
      text: 'in ensemble E, ensemble tensor y is mapped from non-existing output q in model M',
    },
    {
      config: ensembleConfig(E),
      known: [modelConfig({ ...M, output: [{ name: 'b' }, { name: 'b' }] })],
      text: 'in ensemble E, multiple outputs in model M are mapped to the same ensemble tensor y',
    },
    {
      config: ensembleConfig({ ...E, input: [{ name: 'x', data_type: 'TYPE_INT32' }] }),
      known: [M],
      text: 'in ensemble E, ensemble tensor x: inconsistent data type: TYPE_INT32 is inferred from model E while TYPE_FP32 is inferred from model M',
    },
    {
      config: ensembleConfig(TWO_STEPS),
      known: [
        M,
        modelConfig({ ...M, name: 'P', input: [{ name: 'a', data_type: 'TYPE_STRING' }] }),
      ],
      text: 'in ensemble E, ensemble tensor mid: inconsistent data type: TYPE_FP32 is inferred from model M while TYPE_STRING is inferred from model P',
    },
    {
      config: ensembleConfig({ ...E, max_batch_size: 2, output: [{ name: 'y', dims: [16] }] }),
      known: [{ ...M, max_batch_size: 2 }],
      text: 'in ensemble E, ensemble tensor y: inconsistent shape: [-1,16] is inferred from model E while [-1,4] is inferred from model M',
    },
    {
      config: ensembleConfig({ ...E, input: [{ name: 'x', dims: [-1] }] }),
      known: [modelConfig({ ...M, input: [{ name: 'a', dims: [1, 16] }] })],
      text: 'in ensemble E, ensemble tensor x: inconsistent shape: [-1] is inferred from model E while [1,16] is inferred from model M',
    },
    {
      config: ensembleConfig({
        ...E,
        input: [{ name: 'x', dims: [4], reshape: { shape: [2, 2] } }],
      }),
      known: [M],
      text: 'in ensemble E, ensemble tensor x: inconsistent shape: [2,2] is inferred from model E while [4] is inferred from model M',
    },
  ]
  for (const { config, known, text } of table) {
    const error = refusal(config, models(...known))
    t.equal(error?.message, text)
    t.match(error, { reason: 'ENSEMBLE_INVALID', code: 'INVALID_ARGUMENT' })
  }
})

await t.test('shapes that agree in either notation are accepted', async (t) => {
  const batching = { max_batch_size: 4 }
  const accepted: readonly (readonly [ModelConfig, ModelConfig])[] = [
    [ensembleConfig({ ...E, input: [{ name: 'x', dims: [-1] }] }), M],
    [
      ensembleConfig({
        ...E,
        input: [{ name: 'x', dims: [-1, 4] }],
        output: [{ name: 'y', dims: [-1, 4] }],
      }),
      modelConfig({ ...M, ...batching }),
    ],
    [ensembleConfig({ ...E, ...batching }), M],
    [ensembleConfig({ ...E, input: [{ name: 'x', dims: [2, 2], reshape: { shape: [4] } }] }), M],
    [
      ensembleConfig(E),
      modelConfig({ ...M, input: [{ name: 'a', dims: [4], reshape: { shape: [2, 2] } }] }),
    ],
    [
      ensembleConfig(E),
      modelConfig({ ...M, input: [{ name: 'a' }, { name: 'c', optional: true }] }),
    ],
  ]
  for (const [config, model] of accepted) t.equal(refusal(config, models(model)), undefined)
})

await t.test('a dependency that is not there gives the text of Triton', async (t) => {
  const cause = 'version 1 is at UNAVAILABLE state: Internal: no such file;'
  const table: readonly {
    config?: ModelConfig
    known: Readonly<Record<string, ComposingModel>>
    text: string
  }[] = [
    {
      config: ensembleConfig({
        ...TWO_STEPS,
        steps: TWO_STEPS.steps.toReversed(),
      }),
      known: {},
      text: 'ensemble E contains models that are not available or ambiguous: M, P',
    },
    {
      known: { M: { readyVersions: [], configError: "must specify 'name' for M" } },
      text: "ensemble 'E' depends on 'M' which is not valid. Model 'M' failed with error: must specify 'name' for M",
    },
    {
      known: { M: { readyVersions: [] } },
      text: "ensemble 'E' depends on 'M' which has no loaded version.",
    },
    {
      known: { M: { config: M, readyVersions: [], versionError: cause } },
      text: `ensemble 'E' depends on 'M' which has no loaded version. Model 'M' loading failed with error: ${cause}`,
    },
    {
      config: ensembleConfig({ ...E, steps: [stepConfig('M', { a: 'x' }, { b: 'y' }, 2)] }),
      known: { M: ready(M, 1, 3) },
      text: "ensemble 'E' depends on 'M' whose required version 2 is not loaded.",
    },
    {
      config: ensembleConfig({ ...E, steps: [stepConfig('M', { a: 'x' }, { b: 'y' }, 0)] }),
      known: { M: ready(M, 1) },
      text: "ensemble 'E' depends on 'M' whose required version 0 is not loaded.",
    },
  ]
  for (const { config = ensembleConfig(E), known, text } of table) {
    const error = refusal(config, known)
    t.equal(error?.message, text)
    t.match(error, {
      reason: 'ENSEMBLE_DEPENDENCY',
      code: 'INVALID_ARGUMENT',
      details: { ensemble: 'E' },
    })
  }
})

await t.test('planning checks the graph itself first', async (t) => {
  t.match(refusal(ensembleConfig({ ...E, steps: [] }), {}), {
    message: "must specify 'step' for ensemble 'E'",
  })
})

await t.test('responses of a decoupled ensemble cannot be cached', async (t) => {
  const config = { ...ensembleConfig(E), response_cache: { enable: true } }
  t.equal(refusal(config, { M: ready(M, 1) }), undefined)
  t.match(refusal(config, { M: ready({ ...M, ...DECOUPLED }, 1) }), {
    message:
      "Response Cache does not currently support model E with 'decoupled' transaction policy. Please disable the response cache.",
    reason: 'ENSEMBLE_INVALID',
    code: 'INVALID_ARGUMENT',
  })
})

await t.test('decoupled models do not mix', async (t) => {
  const stream = modelConfig({ ...M, ...DECOUPLED, name: 'S' })
  const join = modelConfig({
    name: 'J',
    input: [{ name: 'a' }, { name: 'c' }],
    output: [{ name: 'b' }],
  })
  const streamed = stepConfig('S', { a: 'x' }, { b: 's' })
  const other = stepConfig('S', { a: 'x' }, { b: 's2' })
  const twoStreams =
    "step 'J' reads 's' once for each response of step 'S#0' and 's2' once for each response of step 'S#1'"
  const table = [
    {
      steps: [streamed, stepConfig('J', { a: 's', c: 'x' }, { b: 'y' })],
      model: 'E',
      meeting:
        "step 'J' reads 's' once for each response of step 'S' and 'x' once for each request",
    },
    {
      steps: [streamed, other, stepConfig('J', { a: 's', c: 's2' }, { b: 'y' })],
      model: 'E',
      meeting: twoStreams,
    },
    {
      steps: [
        streamed,
        other,
        stepConfig('J', { a: 's', c: 's2' }, { b: 'j' }),
        stepConfig('M', { a: 'j' }, { b: 'y' }),
      ],
      model: 'J',
      meeting: twoStreams,
    },
  ]
  for (const { steps, model, meeting } of table) {
    const error = refusal(ensembleConfig({ ...E, steps }), models(stream, join, M))
    t.equal(error?.message, mixed(model, meeting))
    t.equal(error?.reason, 'ENSEMBLE_INVALID')
  }
  const outputs = ensembleConfig({
    ...E,
    output: [{ name: 'y' }, { name: 's' }],
    steps: [streamed, stepConfig('M', { a: 'x' }, { b: 'y' })],
  })
  const apart =
    "the outputs are 'y' once for each request and 's' once for each response of step 'S'"
  t.equal(refusal(outputs, models(stream, M))?.message, mixed('E', apart))
})

await t.test('a plan says who makes and who reads each tensor', async (t) => {
  const model = modelConfig({ ...M, max_batch_size: 4 })
  const config = ensembleConfig({
    ...E,
    max_batch_size: 2,
    maxInflight: 3,
    steps: [
      stepConfig('M', { a: 'x' }, { b: 'mid' }, 7),
      stepConfig('M', { a: 'mid' }, { b: 'y' }),
    ],
  })
  const { steps, tensors, inputs, outputs, ...facts } = plan(config, { M: ready(model, 7) })
  t.match(facts, {
    name: 'E',
    maxBatchSize: 2,
    decoupled: false,
    graph: { maxInFlightPerStep: 3 },
  })
  t.match(steps, [
    { index: 0, name: 'M#0', model: 'M', version: 7, isBatched: true, label: 0 },
    { index: 1, name: 'M#1', model: 'M', version: -1, decoupled: false },
  ])
  t.same(steps[1]?.inputs, [{ name: 'a', tensors: [1], dims: [4], optional: false }])
  const typed = { dataType: 'TYPE_FP32', dims: [-1, 4], isBatched: true, label: 0 }
  t.same(tensors, [
    { name: 'x', step: undefined, ...typed },
    { name: 'mid', step: 0, ...typed },
    { name: 'y', step: 1, ...typed },
  ])
  t.match(inputs, [{ name: 'x', tensors: [0], dims: [4], optional: false }])
  t.match(outputs, [{ name: 'y', tensors: [2], dims: [4], optional: false }])
})

await t.test('a model that occurs once gives its step the name', async (t) => {
  t.equal(plan(ensembleConfig(E), models(M)).steps[0]?.name, 'M')
})

await t.test('decoupled is computed, whatever the config says', async (t) => {
  const stream = modelConfig({ ...M, ...DECOUPLED })
  const streaming = plan(ensembleConfig(E), models(stream))
  t.equal(streaming.decoupled, true)
  t.same(completeEnsembleConfig(streaming), { ...ensembleConfig(E), ...DECOUPLED })
  t.equal(streaming.tensors[1]?.label, 1)
  const plain = plan(ensembleConfig({ ...E, ...DECOUPLED }), models(M))
  t.same(completeEnsembleConfig(plain).model_transaction_policy, { decoupled: false })
})
