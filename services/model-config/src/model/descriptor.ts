import { DATATYPES } from '@tutti/tensor'
import { ENUMS, MESSAGES } from './model-config-table.ts'

/** The scalar types that model_config.proto uses. */
const SCALAR_TYPES = [
  'bool',
  'double',
  'float',
  'int32',
  'int64',
  'string',
  'uint32',
  'uint64',
] as const
export type ScalarType = (typeof SCALAR_TYPES)[number]

/** The type of one value of a field. */
type FieldKind =
  | { readonly type: ScalarType }
  | { readonly type: 'enum'; readonly enum: string }
  | { readonly type: 'message'; readonly message: string }

/** One field of a message, as protobuf describes it. */
export type FieldDescriptor = FieldKind & {
  readonly name: string
  readonly repeated: boolean
  /** Type of the keys if the field is a map. Then `type` is the type of the values, and `repeated` is false. */
  readonly map?: 'string' | 'uint64'
  readonly oneof?: string
}

/** A message's fields in the order of the .proto file. */
export interface MessageDescriptor {
  readonly name: string
  readonly fields: readonly FieldDescriptor[]
  readonly byName: ReadonlyMap<string, FieldDescriptor>
}

/** The numbers of an enum's values, by name; 0 is the default. */
export type EnumDescriptor = Readonly<Record<string, number>>

/** A set of messages and enums that refer only to each other. Their names lack the package `inference.`. */
export interface Descriptor {
  readonly messages: ReadonlyMap<string, MessageDescriptor>
  readonly enums: ReadonlyMap<string, EnumDescriptor>
}

/** The messages and enums of model_config.proto, in which the parser, the printer and the JSON conversion look up fields. */
export const DESCRIPTOR: Descriptor = {
  messages: new Map(
    Object.entries(MESSAGES).map(([name, rows]) => [name, toMessageDescriptor(name, rows)]),
  ),
  enums: new Map<string, EnumDescriptor>([['DataType', dataTypes()], ...Object.entries(ENUMS)]),
}

function dataTypes(): EnumDescriptor {
  const rows = Object.values(DATATYPES).map((row) => [row.config, row.number])
  return { TYPE_INVALID: 0, ...Object.fromEntries(rows) }
}

function toMessageDescriptor(
  name: string,
  rows: Readonly<Record<string, string>>,
): MessageDescriptor {
  const fields = Object.entries(rows).map(([field, row]) => toFieldDescriptor(field, row))
  return { name, fields, byName: new Map(fields.map((field) => [field.name, field])) }
}

function toFieldDescriptor(name: string, row: string): FieldDescriptor {
  const [declared = '', oneof] = row.split(' of ')
  const [, key, value] = /^map<(\w+),(.+)>$/.exec(declared) ?? []
  const repeated = declared.startsWith('repeated ')
  const kind = kindOf(value ?? declared.replace('repeated ', ''))
  return {
    ...kind,
    name,
    repeated,
    ...(key !== undefined && { map: key === 'uint64' ? key : 'string' }),
    ...(oneof !== undefined && { oneof }),
  }
}

function kindOf(type: string): FieldKind {
  if (Object.hasOwn(MESSAGES, type)) return { type: 'message', message: type }
  const scalar = SCALAR_TYPES.find((known) => known === type)
  return scalar === undefined ? { type: 'enum', enum: type } : { type: scalar }
}
