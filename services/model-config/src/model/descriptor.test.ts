import t from 'tap'
import { emptyModelConfig } from '../text/parse-model-config.ts'
import { DESCRIPTOR } from './descriptor.ts'

await t.test('every message and enum that a field names is described', async (t) => {
  for (const { name, fields } of DESCRIPTOR.messages.values()) {
    for (const field of fields) {
      if (field.type === 'message') {
        t.ok(DESCRIPTOR.messages.has(field.message), `${name}.${field.name}: ${field.message}`)
      }
      if (field.type === 'enum') {
        t.ok(DESCRIPTOR.enums.has(field.enum), `${name}.${field.name}: ${field.enum}`)
      }
    }
  }
})

await t.test('every enum has a value 0, which is its default', async (t) => {
  for (const [name, values] of DESCRIPTOR.enums) {
    t.ok(Object.values(values).includes(0), name)
  }
})

await t.test('the three schedulers are one choice', async (t) => {
  const fields = DESCRIPTOR.messages.get('ModelConfig')?.fields ?? []
  t.same(
    fields.filter((field) => field.oneof === 'scheduling_choice').map((field) => field.name),
    ['dynamic_batching', 'sequence_batching', 'ensemble_scheduling'],
  )
})

await t.test('an empty config has proto3 defaults and no messages', async (t) => {
  t.same(emptyModelConfig('m'), {
    name: 'm',
    platform: '',
    backend: '',
    runtime: '',
    max_batch_size: 0,
    input: [],
    output: [],
    batch_input: [],
    batch_output: [],
    instance_group: [],
    default_model_filename: '',
    cc_model_filenames: {},
    metric_tags: {},
    parameters: {},
    model_warmup: [],
  })
  t.equal(emptyModelConfig().name, '')
})
