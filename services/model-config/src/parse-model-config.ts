import type { FieldDescriptor } from './descriptor.ts'
import {
  defaultScalar,
  entriesOf,
  finishConfig,
  finishDraft,
  listOf,
  type MessageDraft,
  newDraft,
  oneofRival,
} from './message-draft.ts'
import type { ModelConfig } from './model-config.ts'
import { TextLexer, type Token } from './text-lexer.ts'
import { readScalar, readValue } from './text-scalars.ts'

type FieldHandler = (name: string, token: Token) => void

/** Reads fields until `close` (or the end of the text) and hands each name to `onField`, which reads its value. */
function readFields(lexer: TextLexer, close: '' | '>' | '}', onField: FieldHandler): void {
  while (close === '' ? lexer.token.kind !== 'end' : !lexer.sees(close)) {
    const token = lexer.token
    if (lexer.sees('[')) {
      lexer.fail(token, 'a field of ModelConfig; extensions and Any are not part of it')
    }
    if (token.kind !== 'identifier') {
      lexer.fail(token, close === '' ? 'a field name' : `a field name or "${close}"`)
    }
    lexer.take()
    onField(token.text, token)
    if (!lexer.takeIf(',')) lexer.takeIf(';')
  }
  if (close !== '') lexer.take()
}

/** Reads `{...}` or `<...>`. */
function readBraced(lexer: TextLexer, name: string, onField: FieldHandler): void {
  if (lexer.takeIf('{')) return readFields(lexer, '}', onField)
  lexer.expect('<', `or "{" for message field "${name}"`)
  readFields(lexer, '>', onField)
}

function readMessage(lexer: TextLexer, field: FieldDescriptor, message: string): unknown {
  const draft = newDraft(message)
  readBraced(lexer, field.name, (name, token) => readField(lexer, draft, name, token))
  return finishDraft(draft)
}

/** Reads one `{ key: ... value: ... }`; what is missing has its default, and a key that comes again wins. */
function readMapEntry(lexer: TextLexer, field: FieldDescriptor, into: Map<string, unknown>): void {
  let key: string | undefined
  let value: unknown
  readBraced(lexer, field.name, (name, token) => {
    if (name === 'key' && field.map !== undefined) {
      if (key !== undefined) lexer.failAt(token.offset, '"key" a second time', 'it once')
      lexer.expect(':', `after "key" of "${field.name}"`)
      key = String(readScalar(lexer, field.map, `a key of "${field.name}"`))
    } else if (name === 'value') {
      if (value !== undefined) lexer.failAt(token.offset, '"value" a second time', 'it once')
      value = readElement(lexer, field)
    } else {
      lexer.fail(token, `"key" or "value" in an entry of map "${field.name}"`)
    }
  })
  if (value === undefined) {
    value = field.type === 'message' ? finishDraft(newDraft(field.message)) : defaultScalar(field)
  }
  into.set(key ?? (field.map === 'uint64' ? '0' : ''), value)
}

/** Reads `: value` or, for messages, `{...}` with or without the colon. */
function readElement(lexer: TextLexer, field: FieldDescriptor): unknown {
  if (field.type === 'message') {
    lexer.takeIf(':')
    return readMessage(lexer, field, field.message)
  }
  lexer.expect(':', `after field "${field.name}"`)
  return readValue(lexer, field)
}

/** Reads one value or a bracketed list of values. `read` reads a value whose colon is taken. */
function readValues(lexer: TextLexer, field: FieldDescriptor, read: () => void): void {
  const isBraced = field.type === 'message' || field.map !== undefined
  if (!lexer.takeIf(':') && !isBraced) lexer.expect(':', `after field "${field.name}"`)
  if (!lexer.takeIf('[')) return read()
  if (lexer.takeIf(']')) return
  do read()
  while (lexer.takeIf(','))
  lexer.expect(']', `or "," in the list of field "${field.name}"`)
}

function readField(lexer: TextLexer, draft: MessageDraft, name: string, token: Token): void {
  const field = draft.descriptor.byName.get(name)
  if (field === undefined) {
    return lexer.failAt(
      token.offset,
      `unknown field "${name}"`,
      `a field of ${draft.descriptor.name}`,
    )
  }
  if (field.map !== undefined) {
    const entries = entriesOf(draft, field)
    return readValues(lexer, field, () => readMapEntry(lexer, field, entries))
  }
  if (field.repeated) {
    const values = listOf(draft, field)
    return readValues(lexer, field, () => {
      values.push(
        field.type === 'message'
          ? readMessage(lexer, field, field.message)
          : readValue(lexer, field),
      )
    })
  }
  if (draft.values.has(name)) {
    lexer.failAt(token.offset, `field "${name}" a second time`, 'it at most once')
  }
  const rival = oneofRival(draft, field)
  if (rival !== undefined) {
    lexer.failAt(
      token.offset,
      `field "${name}" after "${rival}"`,
      `one member of oneof "${field.oneof}"`,
    )
  }
  draft.values.set(name, readElement(lexer, field))
}

/**
 * Parses a config.pbtxt: protobuf text format as protobuf's own C++ parser takes it.
 *
 * @param path - the file that messages name; it is not opened.
 * @returns the config as written, with proto3 defaults; nothing is completed or validated.
 * @throws ServeError CONFIG_SYNTAX with line and column.
 * @see https://protobuf.dev/reference/protobuf/textformat-spec/
 */
export function parseModelConfig(text: string, path: string): ModelConfig {
  const lexer = new TextLexer(text, path)
  const draft = newDraft('ModelConfig')
  readFields(lexer, '', (name, token) => readField(lexer, draft, name, token))
  return finishConfig(draft)
}

/** A config with a name and proto3 defaults for everything else. */
export function emptyModelConfig(name = ''): ModelConfig {
  const draft = newDraft('ModelConfig')
  draft.values.set('name', name)
  return finishConfig(draft)
}
