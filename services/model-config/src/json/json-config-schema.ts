import { DESCRIPTOR, type FieldDescriptor, type ScalarType } from '../model/descriptor.ts'
import { NEWER } from './to-json-config.ts'

type Schema = Readonly<Record<string, unknown>>

const INTEGER = { type: 'integer' }
const FLOAT = { anyOf: [{ type: 'number' }, { enum: ['NaN', 'Infinity', '-Infinity'] }] }

const SCALARS: Readonly<Record<ScalarType, Schema>> = {
  bool: { type: 'boolean' },
  double: FLOAT,
  float: FLOAT,
  int32: INTEGER,
  int64: INTEGER,
  string: { type: 'string' },
  uint32: INTEGER,
  uint64: INTEGER,
}

/** Builds the JSON Schema (draft 7) of a configuration as `toJsonConfig` makes it. */
export function jsonConfigSchema(): Schema {
  const definitions = [...DESCRIPTOR.messages.values()].map(({ name, fields }) => [
    name,
    {
      type: 'object',
      properties: Object.fromEntries(fields.map((field) => [field.name, fieldSchema(field)])),
      required: fields.filter(isAlwaysThere).map((field) => field.name),
    },
  ])
  return { ...refTo('ModelConfig'), definitions: Object.fromEntries(definitions) }
}

function isAlwaysThere({ name, type, repeated, map, oneof }: FieldDescriptor): boolean {
  if (NEWER.has(name)) return false
  return oneof === undefined && (type !== 'message' || repeated || map !== undefined)
}

function fieldSchema(field: FieldDescriptor): Schema {
  const schema = elementSchema(field)
  if (field.map !== undefined) return { type: 'object', additionalProperties: schema }
  return field.repeated ? { type: 'array', items: schema } : schema
}

function elementSchema(field: FieldDescriptor): Schema {
  if (field.type === 'message') return refTo(field.message)
  if (field.type !== 'enum') return SCALARS[field.type]
  return { enum: Object.keys(DESCRIPTOR.enums.get(field.enum) ?? {}) }
}

function refTo(message: string): Schema {
  return { $ref: `#/definitions/${message}` }
}
