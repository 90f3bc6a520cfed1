import { parsedEnsemble } from '@tutti/api/testing'
import { type ModelConfig, parseModelConfig } from '@tutti/model-config'
import t from 'tap'
import { planEnsemble } from '../plan/plan-ensemble.ts'
import { modelConfig } from '../testing/configs.ts'
import { checkEnsemble } from './check-manifest.ts'

const IO = { input: [{ name: 'i', dims: [1] }], output: [{ name: 'o', dims: [1] }] }
const plain = modelConfig({ name: 'plain', ...IO })
const decoupled: ModelConfig = {
  ...plain,
  name: 'decoupled',
  model_transaction_policy: { decoupled: true },
}
const sequential: ModelConfig = {
  ...parseModelConfig('name: "sequential" sequence_batching { }', 'config.pbtxt'),
  input: plain.input,
  output: plain.output,
}
const CONFIGS = new Map([plain, decoupled, sequential].map((config) => [config.name, config]))

/** Checks an Ensemble of one step that runs the model under the rules. */
function check(model: string, rules: object, mayRunTwice = false) {
  const manifest = parsedEnsemble('e', {
    inputs: [{ name: 'x', datatype: 'FP32', shape: [1] }],
    outputs: [{ name: 'y', from: 'a.o' }],
    steps: [{ name: 'a', modelRef: { name: model }, inputMap: { i: 'x' }, ...rules }],
  })
  const lookup = (name: string) => {
    const config = CONFIGS.get(name)
    return config === undefined ? 'unknown' : { config, readyVersions: [1], mayRunTwice }
  }
  return checkEnsemble(manifest, { lookup })
}

const REFUSED = [
  ['decoupled', 'its responses are a stream, of which each replica has its own'],
  ['sequential', 'a sequence has its state on one replica'],
] as const
const HEDGE = { hedge: { after: '20ms' }, mayRunTwice: true }
const RETRY = { retry: { maxRetries: 2 } }
const WANT = 'want mayRunTwice: true of the step, or of its Model, if that does no harm'

/** The rules that an accepted Ensemble has for its step. */
function accepted(result: ReturnType<typeof check>) {
  return result.accepted ? result.graph.steps[0]?.call : result
}

await t.test('requests are repeated only where any replica can answer them', async (t) => {
  t.same(accepted(check('plain', HEDGE)), {
    hedge: { afterMs: 20, maxPercent: 5 },
    mayRunTwice: true,
  })
  for (const [model, why] of REFUSED) {
    for (const [field, rules] of Object.entries({ hedge: HEDGE, retry: RETRY })) {
      t.same(check(model, rules), {
        accepted: false,
        reason: 'CallInvalid',
        message: `steps[0](a).${field}: ${why}; want no ${field} for '${model}'`,
      })
    }
    t.same(accepted(check(model, { timeout: '1s' })), { timeoutMs: 1000 })
  }
})

await t.test('nothing runs twice unless its step or its Model allows that', async (t) => {
  const hedge = { hedge: { after: '20ms' } }
  const refused = {
    accepted: false,
    reason: 'CallInvalid',
    message: `steps[0](a).hedge: a request may execute at two replicas; ${WANT}`,
  }
  t.same(check('plain', hedge), refused)
  t.same(check('plain', { ...hedge, mayRunTwice: false }, true), refused, 'the step says no')
  t.match(accepted(check('plain', hedge, true)), { mayRunTwice: true })
  const internal = { retry: { maxRetries: 1, retryOn: ['INTERNAL', 'UNAVAILABLE'] } }
  t.match(check('plain', internal), {
    reason: 'CallInvalid',
    message: `steps[0](a).retry.retryOn: a request that failed with INTERNAL may have run; ${WANT}`,
  })
  t.match(accepted(check('plain', internal, true)), {
    retry: { maxRetries: 1, retryOn: ['INTERNAL', 'UNAVAILABLE'] },
    mayRunTwice: true,
  })
  const full = { retry: { maxRetries: 1, retryOn: ['RESOURCE_EXHAUSTED'], backoff: '1s' } }
  t.same(accepted(check('plain', full)), {
    retry: {
      maxRetries: 1,
      retryOn: ['RESOURCE_EXHAUSTED'],
      backoffMs: 1000,
      budgetPercent: 20,
    },
    mayRunTwice: false,
  })
})

await t.test(
  'a plan has the rules of its steps, and refuses what a new config forbids',
  async (t) => {
    const result = check('plain', HEDGE)
    if (!result.accepted) throw new Error(result.message)
    const { config, graph } = result
    const plan = (now: ModelConfig) =>
      planEnsemble({ config, graph, lookup: () => ({ config: now, readyVersions: [1] }) })
    t.equal(plan(plain).steps[0]?.call, graph.steps[0]?.call)
    for (const [model, why] of REFUSED) {
      const now = { ...(CONFIGS.get(model) ?? plain), name: 'plain' }
      t.throws(() => plan(now), {
        reason: 'ENSEMBLE_INVALID',
        message: `in ensemble 'e', hedge: ${why}; want no hedge for 'plain'`,
      })
    }
  },
)

const FALL = { onError: { fallback: { modelRef: { name: 'small' }, timeout: '50ms' } } }

/** Checks an Ensemble whose step falls back to `small`, which is the model but for `o`. */
function fallingBack(o: Partial<ModelConfig>, more: object = FALL) {
  const manifest = parsedEnsemble('e', {
    inputs: [{ name: 'x', datatype: 'FP32', shape: [1] }],
    outputs: [{ name: 'y', from: 'a.o' }],
    steps: [{ name: 'a', modelRef: { name: 'plain' }, inputMap: { i: 'x' }, ...more }],
  })
  const configs = new Map([...CONFIGS, ['small', { ...plain, name: 'small', ...o }]])
  return checkEnsemble(manifest, {
    lookup: (name) => {
      const config = configs.get(name)
      return config === undefined ? 'unknown' : { config, readyVersions: [1] }
    },
    composes: (name) => (name === 'circle' ? ['e'] : []),
  })
}

const [input] = plain.input
const [output] = plain.output
const AT = 'steps[0](a).onError.fallback'

await t.test('a fallback takes and makes what its step does', async (t) => {
  t.match(fallingBack({}), {
    accepted: true,
    graph: {
      steps: [
        { call: { onError: { kind: 'fallback', model: 'small', version: -1, timeoutMs: 50 } } },
      ],
    },
    models: { small: { name: 'small' } },
  })
  if (input === undefined || output === undefined) throw new Error('the model has both')
  const { sequence_batching: batching } = sequential
  const sequences = batching === undefined ? {} : { sequence_batching: batching }
  const more = modelConfig({ name: 'small', input: [{ name: 'i' }, { name: 'j' }] }).input
  const rows: readonly (readonly [Partial<ModelConfig>, string, string])[] = [
    [
      { output: [{ ...output, data_type: 'TYPE_INT32' }] },
      'DatatypeMismatch',
      `${AT}.modelRef: 'small' makes INT32[1], outputs[0](y) is FP32[1]`,
    ],
    [
      { input: [{ ...input, dims: [2] }] },
      'ShapeMismatch',
      `${AT}.modelRef: 'small' takes FP32[2], inputs[0](x) is FP32[1]`,
    ],
    [
      { input: [{ ...input, name: 'image' }] },
      'UnknownTensor',
      `${AT}.modelRef: 'small' has no input 'i', which the step needs; did you mean 'image'?`,
    ],
    [
      { output: [{ ...output, name: 'tag' }] },
      'UnknownTensor',
      `${AT}.modelRef: 'small' has no output 'o', which the step needs; there is 'tag'`,
    ],
    [
      { input: more.map((one) => ({ ...one, dims: [1] })) },
      'MissingInput',
      `${AT}: the input 'j' of 'small' is fed by nothing: want a tensor FP32[1] in inputMap of the step`,
    ],
    [
      { model_transaction_policy: { decoupled: true } },
      'CallInvalid',
      `${AT}: 'small' is decoupled, want a model of one response`,
    ],
    [sequences, 'CallInvalid', `${AT}: 'small' has sequences, want a model without`],
    [
      { max_batch_size: 8 },
      'CallInvalid',
      `${AT}: got one: want a batch dimension of 'small' as 'plain' has none`,
    ],
  ]
  for (const [o, reason, message] of rows) {
    t.match(fallingBack(o), { accepted: false, reason, message }, message)
  }
})

const to = (fallback: object) => fallingBack({}, { onError: { fallback } })

await t.test('a fallback is looked up as the model of a step is', async (t) => {
  t.match(to({ modelRef: { name: 'smal' } }), {
    reason: 'UnknownModel',
    message: `${AT}.modelRef.name: no Model or Ensemble serves 'smal'`,
  })
  t.match(to({ modelRef: { name: 'small', version: 7 } }), {
    reason: 'UnknownModel',
    message: `${AT}.modelRef.version: got 7, want a version of 'small' that is served: 1`,
  })
  t.match(to({ ensembleRef: { name: 'small' } }), {
    reason: 'UnknownModel',
    message: `${AT}.ensembleRef: 'small' is a Model; want modelRef`,
  })
  t.match(to({ ensembleRef: { name: 'circle' } }), {
    reason: 'CycleDetected',
    message: `${AT}.ensembleRef: an ensemble cannot contain itself: e -> circle -> e`,
  })
  const both = { onError: { fallback: { modelRef: { name: 'small' } } } }
  for (const [model, why] of REFUSED) {
    const result = fallingBack({}, { modelRef: { name: model }, ...both })
    t.match(result, {
      reason: 'CallInvalid',
      message: `steps[0](a).onError: ${why}; want no onError for '${model}'`,
    })
  }
})

await t.test('a plan needs its fallbacks, and refuses one that no longer fits', async (t) => {
  const result = fallingBack({})
  if (!result.accepted) throw new Error(result.message)
  const { config, graph } = result
  const plan = (small: ModelConfig | undefined) =>
    planEnsemble({
      config,
      graph,
      lookup: (name) => {
        const found = name === 'small' ? small : plain
        return found && { config: found, readyVersions: [1] }
      },
    })
  t.match(plan({ ...plain, name: 'small' }).steps[0]?.call, { onError: { model: 'small' } })
  t.throws(() => plan(undefined), {
    reason: 'ENSEMBLE_DEPENDENCY',
    message: /models that are not available or ambiguous: small$/,
  })
  t.throws(() => plan({ ...plain, name: 'small', input: [] }), {
    reason: 'ENSEMBLE_INVALID',
    message: /non-existing input i in model small$/,
  })
  t.throws(() => plan({ ...decoupled, name: 'small' }), {
    message:
      "in ensemble 'e', onError.fallback: 'small' is decoupled, want a model of one response",
  })
})

const ZERO = { datatype: 'FP32', value: [0] }
const withDefaults = (values: object) => fallingBack({}, { onError: { default: values } })

await t.test('defaults have the types of the outputs for which they stand', async (t) => {
  t.match(withDefaults({ o: ZERO }), {
    accepted: true,
    graph: {
      steps: [
        {
          call: {
            onError: {
              kind: 'default',
              outputs: [{ name: 'o', value: { datatype: 'FP32', shape: [1], value: [0] } }],
            },
          },
        },
      ],
    },
  })
  const at = 'steps[0](a).onError.default'
  const rows = [
    [{}, 'CallInvalid', `${at}: got no value of 'o', want those of 'o'`],
    [{ o: ZERO, p: ZERO }, 'UnknownTensor', `${at}[p]: got what nothing reads, want values of 'o'`],
    [
      { o: { datatype: 'INT32', value: [0] } },
      'DatatypeMismatch',
      `${at}[o]: got INT32, want FP32, what 'plain' makes`,
    ],
    [
      { o: { ...ZERO, value: [0, 0] } },
      'ShapeMismatch',
      `${at}[o]: got the shape [2], want [1], what 'plain' makes`,
    ],
  ] as const
  for (const [values, reason, message] of rows) {
    t.match(withDefaults(values), { accepted: false, reason, message })
  }
})
