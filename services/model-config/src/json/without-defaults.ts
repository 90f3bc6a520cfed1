import type { FieldDescriptor } from '../model/descriptor.ts'
import { defaultOf, messageDescriptor } from '../model/message-draft.ts'
import type { ModelConfig } from '../model/model-config.ts'

/**
 * Leaves out the fields of a configuration that have their default and no presence, as protobuf does when it writes a message.
 * A client that does not know a newer field then finds nothing unknown. Copies.
 */
export function withoutDefaults(config: ModelConfig): Readonly<Record<string, unknown>> {
  return prunedMessage('ModelConfig', config)
}

function prunedMessage(name: string, value: unknown): Readonly<Record<string, unknown>> {
  const given = new Map<string, unknown>(Object.entries(Object(value)))
  return Object.fromEntries(
    messageDescriptor(name).fields.flatMap((field): [string, unknown][] => {
      const member = given.get(field.name)
      return member === undefined || isDefault(field, member)
        ? []
        : [[field.name, pruned(field, member)]]
    }),
  )
}

function isDefault(field: FieldDescriptor, value: unknown): boolean {
  const isEmpty = typeof value === 'object' && Object.keys(Object(value)).length === 0
  // The sign of a zero is written.
  return field.repeated || field.map !== undefined ? isEmpty : Object.is(defaultOf(field), value)
}

function pruned(field: FieldDescriptor, value: unknown): unknown {
  if (field.type !== 'message') return value
  const { message } = field
  if (Array.isArray(value)) return value.map((item: unknown) => prunedMessage(message, item))
  if (field.map === undefined) return prunedMessage(message, value)
  const entries: [string, unknown][] = Object.entries(Object(value))
  return Object.fromEntries(entries.map(([key, item]) => [key, prunedMessage(message, item)]))
}
