import { parsedEnsemble } from '@tutti/api/testing'
import { type ModelConfig, parseModelConfig } from '@tutti/model-config'
import t from 'tap'
import { planEnsemble } from '../plan/plan-ensemble.ts'
import { readValidManifest } from '../read/read-manifest.ts'
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

/** An Ensemble of one step that runs the model and is hedged. */
function hedged(model: string) {
  return parsedEnsemble('e', {
    inputs: [{ name: 'x', datatype: 'FP32', shape: [1] }],
    outputs: [{ name: 'y', from: 'a.o' }],
    steps: [
      { name: 'a', modelRef: { name: model }, inputMap: { i: 'x' }, hedge: { after: '20ms' } },
    ],
  })
}

function lookup(name: string) {
  const config = CONFIGS.get(name)
  return config === undefined ? 'unknown' : { config, readyVersions: [1] }
}

function check(model: string) {
  return checkEnsemble(hedged(model), { lookup })
}

const REFUSED = [
  ['decoupled', 'its responses are a stream, of which each replica has its own'],
  ['sequential', 'a sequence has its state on one replica'],
] as const

await t.test('a second replica is asked only of models that any of them can answer', async (t) => {
  const hedge = { afterMs: 20, maxPercent: 5 }
  t.match(check('plain'), { accepted: true, graph: { steps: [{ call: { hedge } }] } })
  for (const [model, why] of REFUSED) {
    t.same(check(model), {
      accepted: false,
      reason: 'CallInvalid',
      message: `steps[0](a).hedge: ${why}; want no hedge for '${model}'`,
    })
  }
})

await t.test(
  'a plan has the hedges of its steps, and refuses what a new config forbids',
  async (t) => {
    const { config, graph } = readValidManifest(hedged('plain'), (name) => CONFIGS.get(name))
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
