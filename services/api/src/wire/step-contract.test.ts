import { deepStrictEqual } from 'node:assert/strict'
import { isEnsembleConfig, type ModelConfig, parseModelConfig } from '@tutti/model-config'
import {
  FACE_ENSEMBLE,
  modelConfig,
  OCR_DETECTION,
  OCR_ENSEMBLE,
} from '@tutti/model-config/testing'
import * as fc from 'fast-check'
import t from 'tap'
import {
  parseDescriptionJson,
  type ServedModel,
  type StepDescription,
  toDescriptionJson,
} from './step-contract.ts'

const text = fc.string({ unit: 'binary', maxLength: 20 })
const natural = fc.maxSafeNat()
const plain = { noNullPrototype: true }
const CONFIGS: readonly ModelConfig[] = [
  modelConfig({
    name: 'm',
    max_batch_size: 8,
    input: [{ name: 'x', optional: true }],
    output: [{ name: 'y', dims: [-1, 3], reshape: { shape: [-1] } }],
    parameters: { key: { string_value: 'a "b"\n' } },
    dynamic_batching: {
      preferred_batch_size: [4, 8],
      max_queue_delay_microseconds: 9007199254740991,
      preserve_ordering: true,
      priority_levels: 2,
      default_priority_level: 1,
      priority_queue_policy: {
        1: {
          timeout_action: 'REJECT',
          default_timeout_microseconds: 5,
          allow_timeout_override: true,
          max_queue_size: 7,
        },
      },
    },
    model_transaction_policy: { decoupled: true },
  }),
  ...[FACE_ENSEMBLE, OCR_DETECTION, OCR_ENSEMBLE].map((one) =>
    parseModelConfig(one, 'config.pbtxt'),
  ),
  parseModelConfig(
    'name: "buckets" model_metrics { metric_control { histogram_options { buckets: [1.5, inf, -inf] } } }',
    'config.pbtxt',
  ),
]

const served: fc.Arbitrary<ServedModel> = fc
  .record(
    {
      name: text,
      config: fc.option(fc.constantFrom(...CONFIGS), { nil: undefined }),
      labels: fc.dictionary(text, fc.array(text, { maxLength: 3 }), plain),
      versions: fc.array(
        fc.record(
          {
            version: natural,
            revision: text,
            state: fc.constantFrom('READY', 'LOADING', 'UNLOADING', 'UNAVAILABLE'),
            reason: text,
            own: fc.record(
              {
                config: fc.constantFrom(...CONFIGS),
                labels: fc.dictionary(text, fc.array(text, { maxLength: 3 }), plain),
              },
              plain,
            ),
            judgesReadiness: fc.boolean(),
          },
          { ...plain, requiredKeys: ['version', 'revision', 'state', 'reason'] },
        ),
        { maxLength: 3 },
      ),
      reason: text,
    },
    plain,
  )
  .map(({ config, ...rest }) => (config === undefined ? rest : { ...rest, config }))

const description: fc.Arbitrary<StepDescription> = fc.record(
  {
    replica: text,
    models: fc.array(served, { maxLength: 4 }),
  },
  { ...plain, requiredKeys: ['replica', 'models'] },
)

/** Makes the value that another process reads. */
function overTheWire(json: unknown): unknown {
  return JSON.parse(JSON.stringify(json))
}

await t.test('the configurations of this test are of every kind', async (t) => {
  t.equal(CONFIGS.filter(isEnsembleConfig).length, 2)
})

await t.test('a description survives the way through JSON', async (t) => {
  const property = fc.property(description, (sent) => {
    deepStrictEqual(parseDescriptionJson(overTheWire(toDescriptionJson(sent))), sent)
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 200 }))
})

await t.test('a name of the prototype’s is a name like any other', async (t) => {
  const labels = Object.fromEntries([['__proto__', ['a']]])
  const sent = { replica: 'r', models: [{ name: 'm', labels, versions: [], reason: '' }] }
  const [model] = parseDescriptionJson(overTheWire(toDescriptionJson(sent))).models
  t.same(Object.keys(model?.labels ?? {}), ['__proto__'])
  t.equal(Object.getPrototypeOf(model?.labels), Object.prototype)
})

await t.test('what only another release says is dropped', async (t) => {
  const model = { name: 'm', labels: [], versions: [], reason: '', colour: 'red' }
  t.strictSame(
    parseDescriptionJson({
      replica: 'r',
      models: [model],
      more: 1,
      loadable: { names: ['m'], isOpen: true },
    }),
    {
      replica: 'r',
      models: [{ name: 'm', labels: {}, versions: [], reason: '' }],
    },
  )
})

await t.test('an error names the field', async (t) => {
  const model = { name: 'm', labels: [], versions: [], reason: '' }
  const version = { version: 1, revision: 'r', state: 'READY', reason: '' }
  const cases: readonly (readonly [string, unknown])[] = [
    ['', null],
    ['', []],
    ['replica', { models: [] }],
    ['models', { replica: 'r', models: {} }],
    ['models[0].name', { replica: 'r', models: [{ ...model, name: 1 }] }],
    ['models[1].labels[0]', { replica: 'r', models: [model, { ...model, labels: [['a']] }] }],
    [
      'models[0].versions[0].state',
      { replica: 'r', models: [{ ...model, versions: [{ ...version, state: 'GONE' }] }] },
    ],
    ...[-1, 1.5, 2 ** 53, '1'].map(
      (number) =>
        [
          'models[0].versions[0].version',
          { replica: 'r', models: [{ ...model, versions: [{ ...version, version: number }] }] },
        ] as const,
    ),
    [
      'models[0].config.max_batch_size',
      { replica: 'r', models: [{ ...model, config: { max_batch_size: 'many' } }] },
    ],
    ['models[0].config', { replica: 'r', models: [{ ...model, config: null }] }],
  ]
  for (const [field, json] of cases) {
    const expected = {
      reason: 'MALFORMED_MESSAGE',
      details: { field },
      message: 'step description',
    }
    t.throws(() => parseDescriptionJson(json), expected, JSON.stringify(json))
  }
})

await t.test('any JSON is parsed or refused with a typed error', async (t) => {
  fc.assert(
    fc.property(fc.jsonValue(), (json) => {
      try {
        parseDescriptionJson(json)
      } catch (error) {
        t.match(error, { reason: 'MALFORMED_MESSAGE' })
      }
    }),
  )
})
