import t from 'tap'
import { z } from 'zod'
import { BUILTINS } from './catalogue.ts'

await t.test('each built-in has a name, a sentence, and facts for the documentation', async (t) => {
  const names = BUILTINS.map(({ name }) => name)
  t.same(new Set(names).size, names.length, 'names are unique')
  for (const { name, summary, inputs, outputs, arithmetic } of BUILTINS) {
    t.match(name, /^[a-z][A-Za-z0-9]*$/, name)
    t.match(summary, /^[A-Z].*\.$/, `${name}: one sentence`)
    t.ok(Object.keys(inputs).length > 0 && Object.keys(outputs).length > 0, `${name}: ports`)
    t.ok(arithmetic.length > 0, `${name}: arithmetic`)
  }
})

/** The schemas within a JSON Schema. */
function* within(schema: object): Generator<Record<string, unknown>> {
  yield { ...schema }
  for (const value of Object.values(schema)) {
    if (typeof value === 'object' && value !== null) yield* within(value)
  }
}

await t.test('each option is described and bounded, and no other is accepted', async (t) => {
  for (const { name, options } of BUILTINS) {
    const schema = z.toJSONSchema(options, { io: 'input' })
    t.equal(schema.additionalProperties, false, `${name} is strict`)
    for (const [key, field] of Object.entries(schema.properties ?? {})) {
      const text = typeof field === 'object' ? field.description : undefined
      t.match(text, /^[A-Z].*[^.]$/s, `${name}.${key}: a description without a full stop`)
    }
    for (const one of within(schema)) {
      if (one['type'] === 'array') t.type(one['maxItems'], 'number', `${name}: lists are bounded`)
      if (one['type'] !== 'string' || 'enum' in one || 'const' in one) continue
      t.type(one['maxLength'], 'number', `${name}: texts are bounded`)
    }
  }
})
