import * as fc from 'fast-check'
import t from 'tap'
import { parseJsonConfig } from '../json/parse-json-config.ts'
import { toJsonConfig } from '../json/to-json-config.ts'
import { withoutDefaults } from '../json/without-defaults.ts'
import type { FieldDescriptor } from '../model/descriptor.ts'
import { enumDescriptor, messageDescriptor } from '../model/message-draft.ts'
import { INTEGER_RANGES, isIntegerType } from '../model/number-range.ts'
import { FACE_ENSEMBLE, OCR_ENSEMBLE } from '../testing/published-configs.ts'
import { emptyModelConfig, parseModelConfig } from './parse-model-config.ts'
import { printModelConfig } from './print-model-config.ts'

const parse = (text: string) => parseModelConfig(text, 'config.pbtxt')

await t.test('a config prints as canonical text', async (t) => {
  const config = parse(`max_batch_size: 8 name: 'a"b\\\\c\\n\\x01' platform: "größe"
    parameters { key: "z" value { string_value: "1" } } parameters { key: "a" value {} }
    input { name: "x" dims: [-1, 3] data_type: 11 } optimization {} metric_tags { key: "k" }
    version_policy { specific { versions: [1, 2] } }`)
  t.equal(
    printModelConfig(config),
    String.raw`name: "a\"b\\c\n\001"
platform: "größe"
version_policy {
  specific {
    versions: [1, 2]
  }
}
max_batch_size: 8
input [
  {
    name: "x"
    data_type: TYPE_FP32
    dims: [-1, 3]
  }
]
optimization {}
metric_tags {
  key: "k"
  value: ""
}
parameters {
  key: "a"
  value {}
}
parameters {
  key: "z"
  value {
    string_value: "1"
  }
}
`,
  )
  t.equal(printModelConfig(emptyModelConfig()), '')
})

await t.test('equal configs print equally, whatever the order of their maps', async (t) => {
  const one = parse('metric_tags { key: "a" value: "1" } metric_tags { key: "b" value: "2" }')
  const two = parse('metric_tags { key: "b" value: "2" } metric_tags { key: "a" value: "1" }')
  t.equal(printModelConfig(one), printModelConfig(two))
})

await t.test('published configs survive printing', async (t) => {
  for (const text of [FACE_ENSEMBLE, OCR_ENSEMBLE]) {
    t.same(parse(printModelConfig(parse(text))), parse(text))
  }
})

type Messages = Map<string, fc.Arbitrary<object>>

/** Values of one element of a field, by its descriptor. */
function elementArbitrary(field: FieldDescriptor, known: Messages): fc.Arbitrary<unknown> {
  const { type } = field
  if (type === 'message') return messageArbitrary(field.message, known)
  if (type === 'enum') return fc.constantFrom(...Object.keys(enumDescriptor(field.enum)))
  if (type === 'string') return fc.string({ unit: 'grapheme', maxLength: 12 })
  if (type === 'bool') return fc.boolean()
  if (!isIntegerType(type)) return type === 'float' ? fc.float() : fc.double()
  const [least, greatest] = INTEGER_RANGES[type]
  const any = fc.bigInt({ min: least, max: greatest }).map(Number)
  return fc.oneof(any, fc.constantFrom(Number(least), Number(greatest), 0))
}

function fieldArbitrary(field: FieldDescriptor, known: Messages): fc.Arbitrary<unknown> {
  const element = elementArbitrary(field, known)
  if (field.map !== undefined) {
    const key =
      field.map === 'uint64' ? fc.nat().map(String) : fc.string({ unit: 'grapheme', maxLength: 6 })
    const entries = fc.array(fc.tuple(key, element), { maxLength: 2 })
    return entries.map((pairs) => Object.fromEntries(pairs))
  }
  return field.repeated ? fc.array(element, { maxLength: 2 }) : element
}

/** At most one member of each oneof is kept. */
function keepOneOf(fields: readonly FieldDescriptor[], value: Record<string, unknown>): object {
  const taken = new Set<string>()
  return Object.fromEntries(
    fields.flatMap((field): [string, unknown][] => {
      const member = value[field.name]
      if (member === undefined) return []
      if (field.oneof !== undefined && taken.has(field.oneof)) return []
      if (field.oneof !== undefined) taken.add(field.oneof)
      return [[field.name, member]]
    }),
  )
}

function messageArbitrary(name: string, known: Messages): fc.Arbitrary<object> {
  const found = known.get(name)
  if (found !== undefined) return found
  const { fields } = messageDescriptor(name)
  const members = fields.map((field): [string, fc.Arbitrary<unknown>] => {
    const any = fieldArbitrary(field, known)
    const isOptional =
      field.oneof !== undefined ||
      (field.type === 'message' && !field.repeated && field.map === undefined)
    return [field.name, isOptional ? fc.option(any, { nil: undefined }) : any]
  })
  const made = fc.record(Object.fromEntries(members)).map((value) => keepOneOf(fields, value))
  known.set(name, made)
  return made
}

const ANY_CONFIG = messageArbitrary('ModelConfig', new Map())

await t.test('any config printed and parsed again is the same config', async (t) => {
  fc.assert(
    fc.property(ANY_CONFIG, (value) => {
      const config = { ...emptyModelConfig(), ...value }
      const text = printModelConfig(config)
      const again = parse(text)
      return t.same(again, config) && printModelConfig(again) === text
    }),
    { numRuns: 60 },
  )
})

/** JSON has no -0; the text has, and prints it because it is not the default. */
function withoutMinusZero<T>(value: T): T {
  if (Object.is(value, -0)) return 0 as T
  if (Array.isArray(value)) return value.map(withoutMinusZero) as T
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [key, withoutMinusZero(part)]),
  ) as T
}

await t.test('any config survives JSON, with the same printed text', async (t) => {
  fc.assert(
    fc.property(ANY_CONFIG, (value) => {
      const config = withoutMinusZero({ ...emptyModelConfig(), ...value })
      const json: unknown = JSON.parse(JSON.stringify(toJsonConfig(config)))
      return printModelConfig(parseJsonConfig(json)) === printModelConfig(config)
    }),
    { numRuns: 60 },
  )
  t.pass('held for every config tried')
})

await t.test('a config without its defaults says the same, and no default', async (t) => {
  const property = fc.property(ANY_CONFIG, (value) => {
    const config = withoutMinusZero({ ...emptyModelConfig(), ...value })
    const short: unknown = JSON.parse(JSON.stringify(withoutDefaults(config), infiniteAsText))
    const holdsDefault = Object.values(Object(short)).some(
      (member) => member === '' || member === 0 || (Array.isArray(member) && member.length === 0),
    )
    const isSame = printModelConfig(parseJsonConfig(short)) === printModelConfig(config)
    return isSame && !holdsDefault
  })
  fc.assert(property, { numRuns: 60 })
  t.pass('held for every config tried')
})

function infiniteAsText(_key: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value
}
