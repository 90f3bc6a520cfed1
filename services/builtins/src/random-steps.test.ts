import { DATATYPES, isDatatype } from '@tutti/tensor'
import * as fc from 'fast-check'
import t from 'tap'
import { buildModel, builtinOf } from './builtin-of.ts'
import { BUILTINS } from './catalogue.ts'
import { parseBuiltin, toOptionsSchema } from './parse-builtin.ts'
import type { FeedingTensor } from './ports.ts'
import { toModelConfig } from './to-model-config.ts'

/** The parts of a JSON Schema that options use. */
interface Field {
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly items?: Field
  readonly minItems?: number
  readonly maxItems?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Field>>
}

/** Draws values that a schema allows, small ones most of the time. */
function valueOf(field: Field): fc.Arbitrary<unknown> {
  if (field.enum !== undefined) return fc.constantFrom(...field.enum)
  if (field.type === 'boolean') return fc.boolean()
  if (field.type === 'string') return fc.constantFrom('', ':', '0', '...', '1:, ...', '::2', 'a')
  if (field.type === 'array') {
    const { items = {}, minItems = 0, maxItems = 4 } = field
    return fc.array(valueOf(items), {
      minLength: minItems,
      maxLength: Math.min(maxItems, minItems + 3),
    })
  }
  if (field.type === 'object') return fc.constant({})
  return numberOf(field)
}

function numberOf({ type, minimum = -3, maximum = 9 }: Field): fc.Arbitrary<number> {
  const [least, most] = [Math.max(minimum, -3), Math.max(minimum, Math.min(maximum, 9))]
  if (type === 'integer') return fc.integer({ min: least, max: most })
  const [low, high] = [Math.ceil(least), Math.floor(most)]
  const any = fc.double({ min: least, max: most, noNaN: true })
  return low > high ? any : fc.oneof(fc.integer({ min: low, max: high }), any)
}

const DATATYPE = fc.constantFrom(...Object.keys(DATATYPES).filter(isDatatype))
const DIMS = fc.array(fc.constantFrom(-1, 0, 1, 2, 3, 4), { maxLength: 5 })
const TENSOR: fc.Arbitrary<FeedingTensor> = fc.record({ datatype: DATATYPE, dims: DIMS })
/** Draws a tensor as the documentation of an input describes it: `FP16 or FP32, [N, 4]`. */
function documented(text: string): fc.Arbitrary<FeedingTensor> {
  const named = text
    .replace(/(?:but|other than) \w+/, '')
    .match(/\b(?:FP|U?INT|BF)\d+\b|\bBOOL\b|\bBYTES\b/g)
    ?.filter(isDatatype)
  const datatype = fc.constantFrom(...(named ?? (['FP32', 'UINT8'] as const)))
  const shapes = [...text.matchAll(/\[([^\]]+)\]/g)].map(([, dims = '']) => dims.split(', '))
  const common = [['N', '4'], ['H', 'W', 'C'], ['N']]
  const dims = fc
    .constantFrom(...(shapes.length > 0 ? shapes : common))
    .map((words) =>
      words.filter((word) => word !== '...').map((word) => EXTENTS[word] ?? Number(word)),
    )
    // Any dims, but none is no tensor.
    .map((some) => (some.length === 0 ? [5] : some))
  return fc.record({ datatype, dims })
}

const EXTENTS: Readonly<Record<string, number>> = {
  N: 5,
  H: 8,
  W: 9,
  C: 3,
  S: 4,
  D: 6,
  height: 8,
  width: 9,
}

const stepOf = (builtin: (typeof BUILTINS)[number]) => {
  const { properties = {}, required = [] } = toOptionsSchema(builtin.options) as Field
  const optional = Object.keys(properties).filter((key) => !required.includes(key))
  // Few at a time, because many exclude each other.
  const options = fc
    .shuffledSubarray(optional, { maxLength: Math.min(3, optional.length) })
    .chain((chosen) => {
      const fields = [...required, ...chosen].map((key) => {
        return [key, valueOf(properties[key] ?? {})] as const
      })
      return fc.record<Record<string, unknown>>(Object.fromEntries(fields))
    })
  const lines = Object.entries(builtin.inputs).flatMap(([line, text]) => {
    return line.split(', ').map((name) => [name, text] as const)
  })
  const inputs = fc.record(
    Object.fromEntries(
      lines.map(([name, text]) => [
        name,
        fc.oneof({ weight: 3, arbitrary: documented(text) }, TENSOR),
      ]),
    ),
    { requiredKeys: [] },
  )
  return fc.record({ name: fc.constant(builtin.name), options, inputs })
}

interface Drawn {
  readonly inputs: Readonly<Record<string, FeedingTensor | undefined>>
}

const toFeeding = (inputs: Drawn['inputs']) =>
  new Map(Object.entries(inputs).flatMap(([name, one]) => (one ? [[name, one] as const] : [])))

/** Checks a step. @returns whether it was made; false for one with faults. */
function checkStep({ name, options, inputs }: Drawn & { name: string; options: object }): boolean {
  const { step, faults } = parseBuiltin({ ...options, name })
  if (step === undefined) {
    if (faults.length > 0) return false
    throw new Error('neither a step nor faults')
  }
  const made = toModelConfig(step, { modelName: 'm', inputs: toFeeding(inputs) })
  const empty = made.faults.find(({ path, got, want }) => [path, got, want].includes(''))
  if (empty !== undefined) throw new Error(`fault without words: ${JSON.stringify(empty)}`)
  const { config } = made
  if (config === undefined) return false
  const extents = config.output.flatMap(({ dims }) => (dims.length > 0 ? dims : [Number.NaN]))
  if (!extents.every((extent) => Number.isInteger(extent) && extent >= -1)) {
    throw new Error(`got ${JSON.stringify(config.output)}`)
  }
  const found = builtinOf(config)
  if (found?.builtin.kind === 'onnx') buildModel(found)
  return found !== undefined
}

await t.test('random options and inputs give a model or faults', async (t) => {
  for (const builtin of BUILTINS) {
    let made = 0
    const property = fc.property(stepOf(builtin), (drawn) => {
      if (checkStep(drawn)) made += 1
    })
    fc.assert(property, { numRuns: 250 })
    t.ok(made > 0, `${builtin.name}: ${made} of them were made`)
  }
})

/** The ports and the model of a step; the fault of its signature; undefined for options that cannot be read. */
function describe(name: string, options: object, inputs: Drawn['inputs']): string | undefined {
  const { step } = parseBuiltin({ ...options, name })
  if (step === undefined) return undefined
  const { config, faults } = toModelConfig(step, { modelName: 'm', inputs: toFeeding(inputs) })
  const found = config && builtinOf(config)
  if (found === undefined) return faults.map(({ want }) => `fault: ${want}`).join()
  return JSON.stringify(found.ports.outputs) + Buffer.from(buildModel(found)).toString('base64')
}

/** Finds an option without which a step is another one. */
function effectsOf({ name, options, inputs }: Drawn & { name: string; options: object }): string[] {
  const whole = describe(name, options, inputs)
  if (whole === undefined || whole === '') return []
  const isMade = !whole.startsWith('fault: ')
  return Object.keys(options).filter((key) => {
    const without = Object.fromEntries(Object.entries(options).filter(([one]) => one !== key))
    const isBound = !isMade && whole.includes(`option ${key}`)
    return (isBound || isMade) && describe(name, without, inputs) !== whole
  })
}

await t.test('every option changes what a step does', async (t) => {
  for (const builtin of BUILTINS) {
    // The code of others is tested where it is.
    if (builtin.kind === 'code') continue
    const left = new Set(Object.keys(builtin.options.shape))
    for (let round = 1; left.size > 0 && round <= 80; round += 1) {
      for (const drawn of fc.sample(stepOf(builtin), { seed: round, numRuns: 100 })) {
        for (const key of effectsOf(drawn)) left.delete(key)
      }
    }
    t.same([...left], [], `${builtin.name}: no option is left without an effect`)
  }
})
