import type { FieldDescriptor } from '../model/descriptor.ts'
import { defaultOf, messageDescriptor } from '../model/message-draft.ts'
import type { ModelConfig } from '../model/model-config.ts'

/** A value of JSON, which JSON.stringify prints without loss. */
export type Json = boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** Converts a scalar. JSON has no infinity and no NaN; protobuf writes them as text. */
function toJsonScalar(value: unknown): Json {
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
  return typeof value === 'boolean' ? value : String(value)
}

function toJsonElement(field: FieldDescriptor, value: unknown): Json {
  return field.type === 'message' ? toJsonMessage(field.message, value) : toJsonScalar(value)
}

function toJsonField(field: FieldDescriptor, value: unknown): Json {
  if (field.map !== undefined) {
    const entries: [string, unknown][] = Object.entries(Object(value))
    return Object.fromEntries(entries.map(([key, item]) => [key, toJsonElement(field, item)]))
  }
  if (Array.isArray(value)) return value.map((item: unknown) => toJsonElement(field, item))
  return toJsonElement(field, value)
}

/** Fields that Triton 2.51 does not have. JSON shows them only if they are set, because clients compare configurations. */
export const NEWER: ReadonlySet<string> = new Set(['max_inflight_requests'])

function toJsonMessage(name: string, value: unknown): { readonly [key: string]: Json } {
  const record = new Map<string, unknown>(Object.entries(Object(value)))
  return Object.fromEntries(
    messageDescriptor(name).fields.flatMap((field): [string, Json][] => {
      const member = record.get(field.name)
      const isAbsent =
        member === undefined || (NEWER.has(field.name) && member === defaultOf(field))
      return isAbsent ? [] : [[field.name, toJsonField(field, member)]]
    }),
  )
}

/**
 * Converts a configuration to JSON as Triton's `/config` endpoint shows it: protobuf JSON with the names of the .proto file.
 * Every scalar, list and map of Triton 2.51 is present, and 64-bit integers are numbers. Copies.
 */
export function toJsonConfig(config: ModelConfig): { readonly [key: string]: Json } {
  return toJsonMessage('ModelConfig', config)
}
