import * as fc from 'fast-check'
import t from 'tap'
import { emptyModelConfig } from '../text/parse-model-config.ts'
import { parseJsonConfig } from './parse-json-config.ts'

await t.test('fields have the names of the .proto file or lowerCamelCase', async (t) => {
  const snake = parseJsonConfig({ max_batch_size: 4, input: [{ data_type: 'TYPE_FP32' }] })
  const camel = parseJsonConfig({ maxBatchSize: 4, input: [{ dataType: 'TYPE_FP32' }] })
  t.same(snake, camel)
  t.equal(snake.max_batch_size, 4)
  t.equal(snake.input[0]?.data_type, 'TYPE_FP32')
})

await t.test('values have every form of protobuf JSON', async (t) => {
  const config = parseJsonConfig({
    name: 'm',
    input: [{ dims: [1, '-1', 3.0], data_type: 11, format: 'format_nchw', optional: true }],
    sequence_batching: { direct: { minimum_slot_utilization: '0.5' } },
    model_metrics: {
      metric_control: [{ histogram_options: { buckets: ['Infinity', 1e3, 'NaN'] } }],
    },
    parameters: { a: { string_value: 'x' } },
    optimization: null,
    platform: null,
  })
  t.same(config.input[0]?.dims, [1, -1, 3])
  t.equal(config.input[0]?.data_type, 'TYPE_FP32')
  t.equal(config.input[0]?.format, 'FORMAT_NCHW')
  t.equal(config.sequence_batching?.direct?.minimum_slot_utilization, 0.5)
  const { buckets } = config.model_metrics?.metric_control[0]?.histogram_options ?? {}
  t.same(buckets?.slice(0, 2), [Number.POSITIVE_INFINITY, 1000])
  t.ok(Number.isNaN(buckets?.[2]))
  t.same(config.parameters, { a: { string_value: 'x' } })
  t.equal(config.platform, '')
  t.notOk('optimization' in config)
  t.same(parseJsonConfig({}), emptyModelConfig())
})

await t.test('the key of a map may be __proto__', async (t) => {
  const json: unknown = JSON.parse('{"metric_tags": {"__proto__": "x"}}')
  t.same(Object.keys(parseJsonConfig(json).metric_tags), ['__proto__'])
})

const REFUSED: readonly [string, unknown, string, string][] = [
  ['no object', [], '', 'got [], want an object'],
  ['nothing', null, '', 'got null, want an object'],
  ['undefined', undefined, '', 'got undefined, want an object'],
  [
    'an unknown field',
    { nme: 'x' },
    'nme',
    'nme: got unknown field "nme", want a field of ModelConfig',
  ],
  ['a prototype name', { toString: 1 }, 'toString', 'got unknown field "toString"'],
  ['a field twice', { max_batch_size: 1, maxBatchSize: 2 }, 'maxBatchSize', 'a second time'],
  [
    'two schedulers',
    { dynamic_batching: {}, sequence_batching: {} },
    'sequence_batching',
    'after "dynamic_batching"',
  ],
  ['no list', { input: {} }, 'input', 'input: got {}, want a list'],
  ['a null in a list', { input: [null] }, 'input[0]', 'input[0]: got null, want an object'],
  ['text for a message', { optimization: 'x' }, 'optimization', 'got "x", want an object'],
  ['a number for text', { name: 3 }, 'name', 'name: got 3, want a string'],
  ['half a surrogate pair', { name: '\ud800' }, 'name', 'want a string'],
  ['a fraction', { max_batch_size: 1.5 }, 'max_batch_size', 'got 1.5, want int32 from'],
  ['a number as words', { max_batch_size: '0x1' }, 'max_batch_size', 'got "0x1", want int32'],
  ['an int32 out of range', { max_batch_size: 2 ** 31 }, 'max_batch_size', 'want int32 from'],
  [
    'an int64 over 2^53',
    { input: [{ dims: ['9007199254740992'] }] },
    'input[0].dims[0]',
    'want int64',
  ],
  [
    'a bool as text',
    { response_cache: { enable: 'true' } },
    'response_cache.enable',
    'true or false',
  ],
  [
    'an enum out of range',
    { input: [{ data_type: 99 }] },
    'input[0].data_type',
    'want one of TYPE_INVALID',
  ],
  ['an unknown enum name', { input: [{ data_type: 'FP32' }] }, 'input[0].data_type', 'got "FP32"'],
  [
    'words for a float',
    { sequence_batching: { direct: { minimum_slot_utilization: 'x' } } },
    'sequence_batching.direct.minimum_slot_utilization',
    'want a float',
  ],
  ['a map as a list', { parameters: [] }, 'parameters', 'want an object'],
  ['a map value', { metric_tags: { a: 1 } }, 'metric_tags["a"]', 'metric_tags["a"]: got 1'],
  [
    'a map key',
    { dynamic_batching: { priority_queue_policy: { x: {} } } },
    'dynamic_batching.priority_queue_policy["x"]',
    'got "x", want uint64',
  ],
]

await t.test('what is wrong is CONFIG_SYNTAX and names the place', async (t) => {
  for (const [what, json, field, message] of REFUSED) {
    try {
      parseJsonConfig(json)
      t.fail(what)
    } catch (error) {
      const thrown = Object(error)
      t.equal(thrown.reason, 'CONFIG_SYNTAX', what)
      t.ok(String(thrown.message).includes(message), `${what}: ${thrown.message}`)
      t.match(thrown.message, /^failed to read model configuration from JSON: /)
      t.same(thrown.details, { field })
    }
  }
})

await t.test('arbitrary JSON is parsed or refused with CONFIG_SYNTAX', async (t) => {
  const key = fc.constantFrom(
    'name',
    'input',
    'dims',
    'parameters',
    'optimization',
    'maxBatchSize',
    '',
  )
  const json = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.jsonValue({ maxDepth: 1 }),
      fc.dictionary(key, tie('value'), { maxKeys: 3 }),
      fc.array(tie('value'), { maxLength: 3 }),
    ),
  }))
  fc.assert(
    fc.property(json.value, (value) => {
      try {
        parseJsonConfig(value)
        return true
      } catch (error) {
        return Object(error).reason === 'CONFIG_SYNTAX'
      }
    }),
    { numRuns: 500 },
  )
  t.pass('held for every value tried')
})
