import type { FieldDescriptor, MessageDescriptor } from '../model/descriptor.ts'
import { defaultOf, messageDescriptor } from '../model/message-draft.ts'
import type { ModelConfig } from '../model/model-config.ts'

const ESCAPES: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
}

function printString(text: string): string {
  // Control characters as three octal digits, so that a digit that follows is not taken for part of the escape.
  const body = text.replace(/["\\\p{Cc}]/gu, (character) => {
    const known = ESCAPES[character]
    if (known !== undefined) return known
    const code = character.codePointAt(0) ?? 0
    return code < 0x80 ? `\\${code.toString(8).padStart(3, '0')}` : character
  })
  return `"${body}"`
}

function printNumber(value: number): string {
  if (Number.isNaN(value)) return 'nan'
  if (Number.isFinite(value)) return Object.is(value, -0) ? '-0.0' : String(value)
  return value < 0 ? '-inf' : 'inf'
}

function printScalar(field: FieldDescriptor, value: unknown): string {
  if (typeof value === 'number') return printNumber(value)
  return typeof value === 'string' && field.type === 'string' ? printString(value) : String(value)
}

function printMessage(name: string, value: unknown, indent: string): string {
  const lines = printFields(messageDescriptor(name), value, `${indent}  `)
  return lines.length === 0 ? '{}' : `{\n${lines.join('\n')}\n${indent}}`
}

function printElement(field: FieldDescriptor, value: unknown, indent: string): string {
  return field.type === 'message'
    ? printMessage(field.message, value, indent)
    : printScalar(field, value)
}

function printMap(field: FieldDescriptor, value: object, indent: string): string[] {
  const inner = `${indent}  `
  // Sorted, so that equal configs print equally.
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return entries.map(([key, element]: [string, unknown]) => {
    const keyText = field.map === 'uint64' ? key : printString(key)
    const separator = field.type === 'message' ? ' ' : ': '
    const text = printElement(field, element, inner)
    return `${indent}${field.name} {\n${inner}key: ${keyText}\n${inner}value${separator}${text}\n${indent}}`
  })
}

function printField(field: FieldDescriptor, value: unknown, indent: string): string[] {
  if (field.map !== undefined) return printMap(field, Object(value), indent)
  if (Array.isArray(value)) {
    if (value.length === 0) return []
    if (field.type !== 'message') {
      const items = value.map((item: unknown) => printScalar(field, item))
      return [`${indent}${field.name}: [${items.join(', ')}]`]
    }
    const inner = `${indent}  `
    const items = value.map((item: unknown) => inner + printElement(field, item, inner))
    return [`${indent}${field.name} [\n${items.join(',\n')}\n${indent}]`]
  }
  if (Object.is(value, defaultOf(field))) return []
  if (field.type === 'message')
    return [`${indent}${field.name} ${printElement(field, value, indent)}`]
  return [`${indent}${field.name}: ${printScalar(field, value)}`]
}

function printFields(descriptor: MessageDescriptor, value: unknown, indent: string): string[] {
  const record = new Map<string, unknown>(Object.entries(Object(value)))
  return descriptor.fields.flatMap((field) => {
    const member = record.get(field.name)
    return member === undefined ? [] : printField(field, member, indent)
  })
}

/**
 * Prints a configuration as canonical protobuf text: fields are in the order of the .proto file, defaults are left out, and map
 * keys are sorted. Equal configurations print equally, and the text parses back to the same configuration.
 */
export function printModelConfig(config: ModelConfig): string {
  const lines = printFields(messageDescriptor('ModelConfig'), config, '')
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`
}
