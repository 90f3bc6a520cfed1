import { deepStrictEqual, ok } from 'node:assert/strict'
import { RETRY_CODES } from '@tutti/api'
import { type ModelConfig, parseModelConfig } from '@tutti/model-config'
import {
  FACE_ENSEMBLE,
  modelConfig,
  OCR_DETECTION,
  OCR_ENSEMBLE,
} from '@tutti/model-config/testing'
import * as fc from 'fast-check'
import t from 'tap'
import {
  type AcceptedEnsemble,
  type AcceptedModel,
  parseAcceptedJson,
  toAcceptedJson,
} from './accepted.ts'
import type { Graph } from './graph.ts'
import { readConfigGraph } from './read/read-config.ts'

const plain = { noNullPrototype: true }
const text = fc.string({ unit: 'binary', maxLength: 12 })
const name = fc.oneof(fc.constant('__proto__'), fc.string({ minLength: 1, maxLength: 12 }))
const natural = fc.maxSafeNat()
const positive = fc.integer({ min: 1 })
const resource = fc.record({ name: text, uid: text, generation: natural }, plain)
const MODELS: readonly ModelConfig[] = [
  modelConfig({ name: 'm', max_batch_size: 8, input: [{ name: 'x', optional: true }] }),
  parseModelConfig(OCR_DETECTION, 'config.pbtxt'),
]
const ENSEMBLES = [FACE_ENSEMBLE, OCR_ENSEMBLE].map((one) => parseModelConfig(one, 'config.pbtxt'))

const model: fc.Arbitrary<AcceptedModel> = fc.record(
  {
    kind: fc.constant('Model'),
    modelName: name,
    resource,
    config: fc.constantFrom(...MODELS),
    versions: fc.array(fc.record({ version: natural, revision: text }, plain), { maxLength: 3 }),
  },
  plain,
)

const hedge = fc.record({ afterMs: positive, maxPercent: fc.integer({ min: 1, max: 100 }) }, plain)
const percent = fc.integer({ min: 1, max: 100 })
const retry = fc.record(
  {
    maxRetries: natural,
    retryOn: fc.uniqueArray(fc.constantFrom(...RETRY_CODES)),
    backoffMs: positive,
    budgetPercent: percent,
  },
  plain,
)
const answers = fc.record(
  {
    kind: fc.constant('default'),
    outputs: fc.constant([
      { name: 'o', value: { datatype: 'FP32', shape: [2], value: [0, 'NaN'] } },
    ]),
  },
  plain,
)
const fallback = fc.record(
  { kind: fc.constant('fallback'), model: name, version: natural, timeoutMs: positive },
  { ...plain, requiredKeys: ['kind', 'model', 'version'] },
)
const onError = fc.oneof(fallback, answers)
const call = fc.record(
  { timeoutMs: positive, hedge, retry, mayRunTwice: fc.boolean(), onError },
  { ...plain, requiredKeys: [] },
)

function ensembleOf(config: ModelConfig): fc.Arbitrary<AcceptedEnsemble> {
  const written = readConfigGraph(config)
  const count = written.steps.length
  const indexes = fc.uniqueArray(fc.nat({ max: count - 1 }), { maxLength: 3 })
  const own = fc.record({ after: indexes, call }, { ...plain, requiredKeys: ['after'] })
  const exactly = { minLength: count, maxLength: count }
  const graph = fc
    .record({
      names: fc.uniqueArray(name, exactly),
      steps: fc.array(own, exactly),
      limits: fc.record(
        { timeoutMs: positive, maxInFlightRequests: positive },
        { ...plain, requiredKeys: [] },
      ),
    })
    .map(({ names, steps, limits }): Graph => {
      const all = written.steps.map((step, i) => ({ ...step, ...steps[i], name: names[i] ?? '' }))
      return { ...written, ...limits, steps: all }
    })
  return fc.record(
    {
      kind: fc.constant('Ensemble'),
      modelName: name,
      resource,
      config: fc.constant(config),
      graph,
      models: fc.dictionary(name, fc.constantFrom(...MODELS), { ...plain, maxKeys: 3 }),
    },
    plain,
  )
}

const accepted = fc.oneof(model, ...ENSEMBLES.map(ensembleOf))

function overWire(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

await t.test('what was accepted survives the way through JSON', async (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(accepted, (one) => {
        deepStrictEqual(parseAcceptedJson(overWire(toAcceptedJson(one))), one)
      }),
    ),
  )
})

await t.test(
  'any JSON is taken or refused with the field, and never breaks anything',
  async (t) => {
    const patches = fc.record({ path: fc.nat(), value: fc.jsonValue({ maxDepth: 2 }) })
    const seen = new Set<string>()
    t.doesNotThrow(() =>
      fc.assert(
        fc.property(accepted, patches, fc.jsonValue(), (one, { path, value }, other) => {
          for (const json of [patched(overWire(toAcceptedJson(one)), path, value), other]) {
            try {
              parseAcceptedJson(json)
            } catch (error) {
              const { code, reason, message } = Object(error)
              deepStrictEqual([code, reason], ['INVALID_ARGUMENT', 'MALFORMED_MESSAGE'])
              seen.add(String(message).split(':')[0] ?? '')
            }
          }
        }),
        { numRuns: 400 },
      ),
    )
    t.same([...seen].toSorted(), ['accepted Ensemble', 'accepted Model', 'accepted revision'])
  },
)

/** Puts a value somewhere inside. */
function patched(json: unknown, path: number, value: unknown): unknown {
  if (typeof json !== 'object' || json === null) return value
  const keys = Object.keys(json)
  const key = keys[path % Math.max(1, keys.length)]
  if (key === undefined) return value
  const inner = patched(Object(json)[key], Math.floor(path / keys.length), value)
  return Array.isArray(json)
    ? json.map((item: unknown, i) => (String(i) === key ? inner : item))
    : { ...json, [key]: inner }
}

await t.test('what only a newer operator says is dropped', async (t) => {
  const [one] = fc.sample(model, { numRuns: 1, seed: 1 })
  ok(one)
  const json = Object(overWire(toAcceptedJson(one)))
  const newer = { ...json, hue: 1, resource: { ...json.resource, hue: 1 } }
  t.strictSame(parseAcceptedJson(newer), one)
})

await t.test('an error names the field', async (t) => {
  const [config] = ENSEMBLES
  ok(config)
  const [ensemble] = fc.sample(ensembleOf(config), { numRuns: 1, seed: 1 })
  ok(ensemble)
  const json = Object(overWire(toAcceptedJson(ensemble)))
  const [first, second] = json.graph.steps
  const withSteps = (steps: readonly object[]) => ({ ...json.graph, steps })
  const cases: readonly (readonly [string, string, unknown])[] = [
    ['kind', 'kind', 'Pod'],
    ['modelName', 'modelName', ''],
    ['resource', 'resource.name', {}],
    ['config', 'config.max_batch_size', { max_batch_size: 'x' }],
    ['config', 'config', {}],
    ['models', 'models', []],
    ['models', 'models.m.input[0].dims', { m: { input: [{ dims: 5 }] } }],
    ['graph', 'graph.steps', {}],
    ['graph', 'graph.steps[1].name', withSteps([first, { ...second, name: first.name }])],
    ['graph', 'graph.steps[0]', withSteps([{ ...first, after: [99] }])],
    ['graph', 'graph.steps[0].after[0]', withSteps([{ ...first, after: [-1] }])],
    [
      'graph',
      'graph.steps[0].inputs[0].from.kind',
      withSteps([{ ...first, inputs: [{ name: 'x', from: { kind: 'nowhere' } }] }]),
    ],
    ['graph', 'graph.outputs', { ...json.graph, outputs: [] }],
    [
      'graph',
      'graph.steps[0].call.hedge.afterMs',
      withSteps([{ ...first, call: { hedge: { maxPercent: 1 } } }]),
    ],
    ['graph', 'graph.timeoutMs', { ...json.graph, timeoutMs: 0 }],
    ['graph', 'graph.maxInFlightRequests', { ...json.graph, maxInFlightRequests: -1 }],
  ]
  for (const [key, field, value] of cases) {
    t.throws(() => parseAcceptedJson({ ...json, [key]: value }), {
      code: 'INVALID_ARGUMENT',
      reason: 'MALFORMED_MESSAGE',
      details: { field },
    })
  }
})
