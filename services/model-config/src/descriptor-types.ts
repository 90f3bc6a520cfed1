/** The scalar types that model_config.proto uses. */
export type ScalarType =
  | 'bool'
  | 'double'
  | 'float'
  | 'int32'
  | 'int64'
  | 'string'
  | 'uint32'
  | 'uint64'

/** What one value of a field is. */
export type FieldKind =
  | { readonly type: ScalarType }
  | { readonly type: 'enum'; readonly enum: string }
  | { readonly type: 'message'; readonly message: string }

/** One field of a message, as protobuf describes it. */
export type FieldDescriptor = FieldKind & {
  readonly name: string
  readonly number: number
  readonly repeated: boolean
  /** The key's type if this is a map; `type` is then the type of its values and `repeated` is false. */
  readonly map?: 'string' | 'uint64'
  readonly oneof?: string
}

/** A message's fields in the order of the .proto file, which is the order of Triton's JSON. */
export interface MessageDescriptor {
  readonly name: string
  readonly fields: readonly FieldDescriptor[]
  readonly byName: ReadonlyMap<string, FieldDescriptor>
}

/** Enum value name -> number; the first is the default. */
export type EnumDescriptor = Readonly<Record<string, number>>

/** A closed set of messages and enums; names lack the package `inference.`. */
export interface Descriptor {
  readonly messages: ReadonlyMap<string, MessageDescriptor>
  readonly enums: ReadonlyMap<string, EnumDescriptor>
}

/** How a row of the table writes a field: its name is the key of the row. */
export type FieldRow = FieldKind & {
  readonly number: number
  readonly repeated?: boolean
  readonly map?: 'string' | 'uint64'
  readonly oneof?: string
}

interface RowOptions {
  readonly oneof?: string
}

/** A singular scalar. */
export function scalar(number: number, type: ScalarType, o: RowOptions = {}): FieldRow {
  return { number, type, ...o }
}

/** A list of scalars. */
export function list(number: number, type: ScalarType): FieldRow {
  return { number, type, repeated: true }
}

/** A singular enum value. */
export function choice(number: number, name: string): FieldRow {
  return { number, type: 'enum', enum: name }
}

/** A singular message. */
export function message(number: number, name: string, o: RowOptions = {}): FieldRow {
  return { number, type: 'message', message: name, ...o }
}

/** A list of messages. */
export function messages(number: number, name: string): FieldRow {
  return { number, type: 'message', message: name, repeated: true }
}

/** A map of text to text. */
export function textMap(number: number): FieldRow {
  return { number, type: 'string', map: 'string' }
}

/** A map to messages. */
export function messageMap(
  number: number,
  name: string,
  key: 'string' | 'uint64' = 'string',
): FieldRow {
  return { number, type: 'message', message: name, map: key }
}

/** Turns the rows of one message into its descriptor. */
export function toMessageDescriptor(
  name: string,
  rows: Readonly<Record<string, FieldRow>>,
): MessageDescriptor {
  const fields = Object.entries(rows).map(([field, row]) => ({
    name: field,
    repeated: false,
    ...row,
  }))
  return { name, fields, byName: new Map(fields.map((field) => [field.name, field])) }
}
