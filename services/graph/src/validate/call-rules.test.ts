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
