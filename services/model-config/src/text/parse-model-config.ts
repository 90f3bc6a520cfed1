import { nearestName } from '@tutti/errors'
import type { FieldDescriptor } from '../model/descriptor.ts'
import {
  defaultOf,
  defaultScalar,
  draftListOf,
  entriesOf,
  finishConfig,
  finishDraft,
  type MessageDraft,
  newDraft,
  oneofRival,
} from '../model/message-draft.ts'
import type { ModelConfig } from '../model/model-config.ts'
import { TextLexer, type Token } from './text-lexer.ts'
import { readScalar, readValue } from './text-scalars.ts'

type FieldHandler = (name: string, token: Token) => void

/** The position of a field in a text. Line and column count from 1. */
export interface ConfigPosition {
  readonly line: number
  readonly column: number
}

/** Offsets of fields in the text, by path: `ensemble_scheduling.step[2].input_map[image]`. */
type Offsets = Map<string, number>

/** A message that is being read: what was given, and the path of its fields. */
interface Message {
  readonly lexer: TextLexer
  readonly draft: MessageDraft
  /** '' or a path with a dot behind it. */
  readonly prefix: string
  readonly offsets: Offsets
}

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

/** Place of a value that the lexer is about to read. */
interface Place {
  readonly lexer: TextLexer
  readonly path: string
  readonly offsets: Offsets
}

function readMessage(field: FieldDescriptor, message: string, at: Place): unknown {
  const { lexer, path, offsets } = at
  const draft = newDraft(message)
  const into = { lexer, draft, prefix: `${path}.`, offsets }
  readBraced(lexer, field.name, (name, token) => readField(into, name, token))
  return finishDraft(draft)
}

/** Reads one `{ key: ... value: ... }`; what is missing has its default, and a key that comes again wins. */
function readMapEntry(field: FieldDescriptor, into: Map<string, unknown>, at: Place): void {
  const { lexer } = at
  const { offset } = lexer.token
  let key: string | undefined
  let value: unknown
  readBraced(lexer, field.name, (name, token) => {
    if (name === 'key' && field.map !== undefined) {
      if (key !== undefined) lexer.failAt(token.offset, '"key" a second time', 'it once')
      lexer.expect(':', `after "key" of "${field.name}"`)
      key = String(readScalar(lexer, field.map, `a key of "${field.name}"`))
    } else if (name === 'value') {
      if (value !== undefined) lexer.failAt(token.offset, '"value" a second time', 'it once')
      value = readElement(field, at)
    } else {
      lexer.fail(token, `"key" or "value" in an entry of map "${field.name}"`)
    }
  })
  if (value === undefined) {
    value = field.type === 'message' ? finishDraft(newDraft(field.message)) : defaultScalar(field)
  }
  const name = key ?? (field.map === 'uint64' ? '0' : '')
  into.set(name, value)
  at.offsets.set(`${at.path}[${name}]`, offset)
}

/** Reads `: value` or, for messages, `{...}` with or without the colon. */
function readElement(field: FieldDescriptor, at: Place): unknown {
  const { lexer } = at
  if (field.type === 'message') {
    lexer.takeIf(':')
    return readMessage(field, field.message, at)
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

function readField(message: Message, name: string, token: Token): void {
  const { lexer, draft, offsets } = message
  const field = draft.descriptor.byName.get(name)
  if (field === undefined) {
    const near = nearestName(name, draft.descriptor.byName.keys())
    const hint = near === undefined ? '' : `; did you mean "${near}"?`
    const want = `a field of ${draft.descriptor.name}${hint}`
    return lexer.failAt(token.offset, `unknown field "${name}"`, want)
  }
  const path = `${message.prefix}${name}`
  if (!offsets.has(path)) offsets.set(path, token.offset)
  if (field.map !== undefined) {
    const entries = entriesOf(draft, field)
    const at = { lexer, path, offsets }
    return readValues(lexer, field, () => readMapEntry(field, entries, at))
  }
  if (field.repeated) {
    const values = draftListOf(draft, field)
    return readValues(lexer, field, () => {
      const at = { lexer, path: `${path}[${values.length}]`, offsets }
      offsets.set(at.path, lexer.token.offset)
      values.push(
        field.type === 'message' ? readMessage(field, field.message, at) : readValue(lexer, field),
      )
    })
  }
  if (draft.values.has(name) && !isStillDefault(draft.values.get(name), field)) {
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
  draft.values.set(name, readElement(field, { lexer, path, offsets }))
}

/** Tells whether a field still has its default. protobuf cannot tell a field that was set to its default from an absent one. */
function isStillDefault(value: unknown, field: FieldDescriptor): boolean {
  return value === defaultOf(field)
}

/**
 * Parses a config.pbtxt in protobuf text format, with the rules of protobuf's own C++ parser.
 *
 * @param path - the file, for the text of errors; it is not opened.
 * @returns the configuration as written, with proto3 defaults; nothing is completed or validated.
 * @throws ServeError CONFIG_SYNTAX with line and column.
 * @see https://protobuf.dev/reference/protobuf/textformat-spec/
 */
export function parseModelConfig(text: string, path: string): ModelConfig {
  return locateModelConfig(text, path).config
}

/**
 * Parses a config.pbtxt as `parseModelConfig` does, and also tells where each field stands.
 *
 * @returns `positionOf`, which takes a path such as `ensemble_scheduling.step[2].input_map[image]`. For a path that is not in
 *   the text, it gives the position of the nearest parent, else line 1, column 1.
 * @throws ServeError CONFIG_SYNTAX with line and column.
 */
export function locateModelConfig(
  text: string,
  path: string,
): { readonly config: ModelConfig; readonly positionOf: (field: string) => ConfigPosition } {
  const lexer = new TextLexer(text, path)
  const draft = newDraft('ModelConfig')
  const offsets: Offsets = new Map()
  const message = { lexer, draft, prefix: '', offsets }
  readFields(lexer, '', (name, token) => readField(message, name, token))
  return {
    config: finishConfig(draft),
    positionOf: (field) => lexer.positionAt(findOffset(offsets, field)),
  }
}

function findOffset(offsets: Offsets, field: string): number {
  const parents = [...offsets.keys()].filter(
    (path) => field === path || (field.startsWith(path) && /^[.[]/.test(field.slice(path.length))),
  )
  const nearest = parents.toSorted((a, b) => b.length - a.length)[0]
  return offsets.get(nearest ?? '') ?? 0
}

/** Makes a configuration with a name, and proto3 defaults for everything else. */
export function emptyModelConfig(name = ''): ModelConfig {
  const draft = newDraft('ModelConfig')
  draft.values.set('name', name)
  return finishConfig(draft)
}
