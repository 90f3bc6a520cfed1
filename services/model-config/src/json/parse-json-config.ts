import { ServeError } from '@tutti/errors'
import type { FieldDescriptor, MessageDescriptor } from '../model/descriptor.ts'
import {
  enumDescriptor,
  enumNameOf,
  finishConfig,
  finishDraft,
  type MessageDraft,
  newDraft,
  oneofRival,
} from '../model/message-draft.ts'
import type { ModelConfig } from '../model/model-config.ts'
import {
  describeRange,
  type IntegerType,
  isIntegerType,
  toIntegerInRange,
} from '../model/number-range.ts'

/** Shows a JSON value in messages. */
function show(value: unknown): string {
  const text = JSON.stringify(value) ?? typeof value
  return text.length > 60 ? `${text.slice(0, 60)}...` : text
}

function refuse(path: string, got: string, want: string): never {
  const where = path === '' ? '' : `${path}: `
  const text = `failed to read model configuration from JSON: ${where}got ${got}, want ${want}`
  throw new ServeError('CONFIG_SYNTAX', text, { details: { field: path } })
}

function toCamel(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}

function findField(descriptor: MessageDescriptor, key: string): FieldDescriptor | undefined {
  return (
    descriptor.byName.get(key) ?? descriptor.fields.find((field) => toCamel(field.name) === key)
  )
}

function readInteger(value: unknown, type: IntegerType, path: string): number {
  const want = describeRange(type)
  const isText = typeof value === 'string' && /^-?(?:0|[1-9][0-9]*)$/.test(value)
  const isWhole = typeof value === 'number' && Number.isInteger(value)
  if (!isText && !isWhole) return refuse(path, show(value), want)
  return toIntegerInRange(BigInt(value), type) ?? refuse(path, show(value), want)
}

const FLOAT_WORDS = new Map([
  ['NaN', Number.NaN],
  ['Infinity', Number.POSITIVE_INFINITY],
  ['-Infinity', Number.NEGATIVE_INFINITY],
])

function readFloat(value: unknown, type: 'double' | 'float', path: string): number {
  if (typeof value === 'number') return value
  if (typeof value === 'string') {
    const word = FLOAT_WORDS.get(value)
    if (word !== undefined) return word
    if (/^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/.test(value)) {
      return readFloat(Number(value), type, path)
    }
  }
  return refuse(path, show(value), `a ${type}`)
}

function readEnum(value: unknown, name: string, path: string): string {
  const values = enumDescriptor(name)
  // Triton reads enum names in JSON without regard to case.
  const found =
    typeof value === 'number'
      ? enumNameOf(values, value)
      : Object.keys(values).find(
          (known) => typeof value === 'string' && known === value.toUpperCase(),
        )
  return found ?? refuse(path, show(value), `one of ${Object.keys(values).join(', ')}`)
}

function readString(value: unknown, path: string): string {
  if (typeof value === 'string' && value.isWellFormed()) return value
  return refuse(path, show(value), 'a string')
}

function readElement(field: FieldDescriptor, value: unknown, path: string): unknown {
  const { type } = field
  if (type === 'message') return finishDraft(readDraft(field.message, value, path))
  if (type === 'enum') return readEnum(value, field.enum, path)
  if (type === 'string') return readString(value, path)
  if (isIntegerType(type)) return readInteger(value, type, path)
  if (type !== 'bool') return readFloat(value, type, path)
  return typeof value === 'boolean' ? value : refuse(path, show(value), 'true or false')
}

function objectEntries(value: unknown, path: string): [string, unknown][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return refuse(path, show(value), 'an object')
  }
  return Object.entries(value)
}

function readMap(field: FieldDescriptor, value: unknown, path: string): Map<string, unknown> {
  const read = new Map<string, unknown>()
  for (const [key, item] of objectEntries(value, path)) {
    const at = `${path}[${JSON.stringify(key)}]`
    const name =
      field.map === 'uint64' ? String(readInteger(key, 'uint64', at)) : readString(key, at)
    read.set(name, readElement(field, item, at))
  }
  return read
}

function readMember(field: FieldDescriptor, value: unknown, path: string): unknown {
  if (field.map !== undefined) return readMap(field, value, path)
  if (!field.repeated) return readElement(field, value, path)
  if (!Array.isArray(value)) return refuse(path, show(value), 'a list')
  return value.map((item: unknown, i) => readElement(field, item, `${path}[${i}]`))
}

function takeMember(draft: MessageDraft, key: string, value: unknown, path: string): void {
  const field = findField(draft.descriptor, key)
  const at = path === '' ? key : `${path}.${key}`
  if (field === undefined) {
    return refuse(at, `unknown field "${key}"`, `a field of ${draft.descriptor.name}`)
  }
  // null is protobuf JSON for "not given".
  if (value === null) return
  if (draft.values.has(field.name)) refuse(at, `field "${key}" a second time`, 'it at most once')
  const rival = oneofRival(draft, field)
  if (rival !== undefined) {
    refuse(at, `field "${key}" after "${rival}"`, `one member of oneof "${field.oneof}"`)
  }
  draft.values.set(field.name, readMember(field, value, at))
}

function readDraft(name: string, value: unknown, path: string): MessageDraft {
  const draft = newDraft(name)
  for (const [key, item] of objectEntries(value, path)) takeMember(draft, key, item, path)
  return draft
}

/**
 * Parses a configuration from protobuf JSON: a load request's `config` parameter, or an answer of `/config`. Field names are as
 * in the .proto file or in lowerCamelCase. 64-bit integers are numbers or text. Enums are names in any case, or numbers.
 *
 * @param json - what JSON.parse gave.
 * @throws ServeError CONFIG_SYNTAX, with the place in `details.field`.
 */
export function parseJsonConfig(json: unknown): ModelConfig {
  return finishConfig(readDraft('ModelConfig', json, ''))
}
