import { assert } from '@tutti/errors'
import type { EnumDescriptor, FieldDescriptor, MessageDescriptor } from './descriptor.ts'
import { DESCRIPTOR } from './descriptor.ts'
import type { ModelConfig } from './model-config.ts'

/** A message while it is being read: only what was given, without defaults. */
export interface MessageDraft {
  readonly descriptor: MessageDescriptor
  /** Values by field name. Lists are arrays, and maps are Maps until the draft is finished. */
  readonly values: Map<string, unknown>
}

/**
 * Looks up a message that another descriptor names.
 *
 * @throws ServeError INTERNAL for a name that is not in the descriptor.
 */
export function messageDescriptor(name: string): MessageDescriptor {
  const descriptor = DESCRIPTOR.messages.get(name)
  assert(descriptor !== undefined, `no message ${name} in the descriptor`)
  return descriptor
}

/**
 * Looks up the values of an enum that a descriptor names.
 *
 * @throws ServeError INTERNAL for a name that is not in the descriptor.
 */
export function enumDescriptor(name: string): EnumDescriptor {
  const descriptor = DESCRIPTOR.enums.get(name)
  assert(descriptor !== undefined, `no enum ${name} in the descriptor`)
  return descriptor
}

/** Finds the name of an enum value by its number; returns undefined if there is none. */
export function enumNameOf(values: EnumDescriptor, number: number): string | undefined {
  return Object.keys(values).find((name) => values[name] === number)
}

/** Finds another member of the field's oneof that the draft already holds, and returns its name; undefined if there is none. */
export function oneofRival(draft: MessageDraft, field: FieldDescriptor): string | undefined {
  if (field.oneof === undefined) return undefined
  return draft.descriptor.fields.find(
    (other) =>
      other.oneof === field.oneof && other.name !== field.name && draft.values.has(other.name),
  )?.name
}

/** Returns the list of a repeated field in the draft, and adds it on first use. */
export function draftListOf(draft: MessageDraft, field: FieldDescriptor): unknown[] {
  const found = draft.values.get(field.name)
  if (Array.isArray(found)) return found
  const made: unknown[] = []
  draft.values.set(field.name, made)
  return made
}

/** Returns the entries of a map field in the draft, and adds them on first use. */
export function entriesOf(draft: MessageDraft, field: FieldDescriptor): Map<string, unknown> {
  const found = draft.values.get(field.name)
  if (found instanceof Map) return found
  const made = new Map<string, unknown>()
  draft.values.set(field.name, made)
  return made
}

/** Returns the proto3 default of a field; undefined for a field with presence, which has none. */
export function defaultOf(field: FieldDescriptor): unknown {
  if (field.map !== undefined) return {}
  if (field.repeated) return []
  if (field.oneof !== undefined || field.type === 'message') return undefined
  return defaultScalar(field)
}

/** Returns the proto3 default of one value of a scalar or enum field. */
export function defaultScalar(field: FieldDescriptor): unknown {
  if (field.type === 'enum') return enumNameOf(enumDescriptor(field.enum), 0)
  if (field.type === 'string') return ''
  return field.type === 'bool' ? false : 0
}

/**
 * Makes a plain object from a draft. Fields are in the order of the .proto file, defaults are filled in, and absent messages
 * are left out.
 */
export function finishDraft(draft: MessageDraft): Readonly<Record<string, unknown>> {
  const entries: [string, unknown][] = []
  for (const field of draft.descriptor.fields) {
    const given = draft.values.get(field.name)
    // fromEntries defines properties, so that a key like "__proto__" stays a plain key.
    const value = given instanceof Map ? Object.fromEntries(given) : (given ?? defaultOf(field))
    if (value !== undefined) entries.push([field.name, value])
  }
  return Object.fromEntries(entries)
}

/**
 * Makes an empty draft of a message.
 *
 * @throws ServeError INTERNAL for a name that is not in the descriptor.
 */
export function newDraft(name: string): MessageDraft {
  return { descriptor: messageDescriptor(name), values: new Map() }
}

/** True if every field that always has a value has one: then the descriptor vouches for the types. */
function isModelConfig(value: object): value is ModelConfig {
  return messageDescriptor('ModelConfig').fields.every(
    (field) => defaultOf(field) === undefined || Object.hasOwn(value, field.name),
  )
}

/** Makes a ModelConfig from a draft of the message ModelConfig, with defaults filled in. */
export function finishConfig(draft: MessageDraft): ModelConfig {
  const config: object = finishDraft(draft)
  assert(isModelConfig(config), `${draft.descriptor.name} lacks a field of ModelConfig`)
  return config
}
