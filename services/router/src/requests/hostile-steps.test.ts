import type { ServedModel } from '@tutti/api'
import { type ModelConfig, normaliseModelConfig, parseModelConfig } from '@tutti/model-config'
import { responsesTo } from '@tutti/tensor/testing'
import * as fc from 'fast-check'
import t from 'tap'
import {
  chain,
  collect,
  failure,
  floats,
  oneToOne,
  quiet,
  ReplicaExecutors,
  request,
  ScriptedReplicas,
  testRouter,
  toConfig,
} from '../testing/index.ts'

const base = normaliseModelConfig(parseModelConfig(oneToOne, 'config.pbtxt'))
const [input] = base.input
const [output] = base.output

const dims = fc.array(fc.integer({ min: -2, max: 9 }), { maxLength: 3 })
const datatype = fc.constantFrom<ModelConfig['input'][number]['data_type']>(
  'TYPE_FP32',
  'TYPE_STRING',
  'TYPE_INVALID',
)
const name = fc.constantFrom('X', 'Y', '', '__proto__')

/** Configurations as no repository would let them pass. */
const config = fc
  .record({
    max_batch_size: fc.integer({ min: -1, max: 2 ** 31 - 1 }),
    inputs: fc.array(fc.record({ name, dims, data_type: datatype }), { maxLength: 3 }),
    outputs: fc.array(fc.record({ name, dims, data_type: datatype }), { maxLength: 3 }),
    decoupled: fc.boolean(),
  })
  .map(({ max_batch_size, inputs, outputs, decoupled }): ModelConfig => {
    if (input === undefined || output === undefined) throw new Error('the config has no tensors')
    return {
      ...base,
      max_batch_size,
      input: inputs.map((given) => ({ ...input, ...given })),
      output: outputs.map((given) => ({ ...output, ...given })),
      model_transaction_policy: { decoupled },
    }
  })

const version = fc.record({
  version: fc.constantFrom(0, 1, 2, Number.MAX_SAFE_INTEGER),
  revision: fc.constantFrom('', 'r', 'x y'),
  state: fc.constantFrom('READY', 'LOADING', 'UNLOADING', 'UNAVAILABLE'),
  reason: fc.constantFrom('', 'Internal: no'),
})

const model: fc.Arbitrary<ServedModel> = fc
  .record(
    {
      name: fc.constantFrom('bad', 'ens', 'worse', '__proto__', ''),
      config,
      labels: fc.dictionary(name, fc.array(fc.string(), { maxLength: 2 }), { maxKeys: 2 }),
      versions: fc.array(version, { maxLength: 4 }),
      reason: fc.constantFrom('', 'refused'),
    },
    { requiredKeys: ['name', 'labels', 'versions', 'reason'] },
  )
  .map((made): ServedModel => made)

await t.test('whatever a step describes, the models of others go on', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(model, { maxLength: 4 }), { minLength: 1, maxLength: 4 }),
      fc.array(fc.tuple(name, fc.constantFrom(0, 1), fc.constantFrom('r', '')), { maxLength: 3 }),
      async (descriptions, announced) => {
        const replicas = new ScriptedReplicas({
          ensembles: { ens: chain('good'), needsBad: chain('bad'), needsWorse: chain('worse') },
          awaitsSteps: true,
        })
        const { router } = replicas
        replicas.serve('honest', [{ model: 'good', revision: 'g', config: oneToOne }])
        for (const [i, models] of descriptions.entries()) {
          const control = { statistics: async () => [] }
          router.view.describe({ replica: `hostile-${i % 2}`, models }, control)
          replicas.heartbeat(`hostile-${i % 2}`, announced)
          router.isReady()
          await router.repositoryIndex(false)
        }
        await collect(responsesTo(router.resolve('good', ''), request('X'), quiet))
        await collect(responsesTo(router.resolve('ens', ''), request('IN'), quiet))
        router.view.remove('hostile-0')
        await collect(responsesTo(router.resolve('ens', ''), request('IN'), quiet))
      },
    ),
    { numRuns: 300 },
  )
  t.pass()
})

await t.test('a step that gives an output twice has not answered', async (t) => {
  const replicas = new ReplicaExecutors()
  const twice = [floats('Y', [1]), floats('Y', [2])]
  replicas.set('a', () => ({
    execute: (_request, sink) =>
      sink.send({ index: 0, final: true, outputs: twice, parameters: new Map() }),
  }))
  const { router } = testRouter({ replicas, ensembles: { e: chain('m') } })
  const versions = [{ version: 1, revision: 'r', state: 'READY' as const, reason: '' }]
  const served = { name: 'm', config: toConfig('m', oneToOne), labels: {}, versions, reason: '' }
  router.view.describe({ replica: 'a', models: [served] }, { statistics: async () => [] })
  for (const [model, input] of [
    ['m', 'X'],
    ['e', 'IN'],
  ] as const) {
    const answer = responsesTo(router.resolve(model, ''), request(input), quiet)
    t.match(await failure(answer), {
      reason: 'RESPONSE_INVALID',
      message: /model 'm': got output "Y" twice$/,
    })
    t.equal(router.memory.count, 0)
  }
})
