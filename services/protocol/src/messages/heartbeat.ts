import { ServeError } from '@tutti/errors'
import { parseBoundedJson } from '@tutti/formats'
import {
  HEARTBEAT_LIMIT_BYTES,
  HEARTBEAT_REVISIONS,
  MEMBER_ID_LIMIT_BYTES,
  MESSAGE_PROTOCOL_VERSION,
} from './limits.ts'
import { malformedField } from './malformed-field.ts'
import type { Heartbeat, SentHeartbeat } from './message.ts'

/**
 * Most values of a heartbeat, as parseBoundedJson counts them: four for each revision, and as many for what newer members add.
 */
const MAX_VALUES = 8 * HEARTBEAT_REVISIONS

type Fields = Readonly<Record<string, unknown>>

/**
 * Encodes a heartbeat as JSON in UTF-8.
 *
 * @param maxPayload - bytes that the broker takes in one message; any number if absent.
 * @throws ServeError MESSAGE_TOO_LARGE if the heartbeat has too many revisions or bytes. Its text says what to do.
 */
export function encodeHeartbeat(
  heartbeat: SentHeartbeat,
  maxPayload = Number.POSITIVE_INFINITY,
): Uint8Array {
  const count = heartbeat.revisions?.length ?? 0
  if (count > HEARTBEAT_REVISIONS) {
    throw tooLarge(count, `one announces at most ${HEARTBEAT_REVISIONS}: ${SPREAD}`)
  }
  const { member, transports, ...others } = heartbeat
  const bytes = Buffer.from(JSON.stringify({ peer: member, ...others, bearers: transports }))
  const size = bytes.byteLength
  if (size > HEARTBEAT_LIMIT_BYTES) {
    throw tooLarge(count, `it has ${size} bytes, at most ${HEARTBEAT_LIMIT_BYTES} fit: ${SPREAD}`)
  }
  if (size > maxPayload) {
    const what = `it has ${size} bytes, the broker takes at most ${maxPayload}`
    throw tooLarge(count, `${what}: raise max_payload of the broker, or ${SPREAD}`)
  }
  return bytes
}

const SPREAD = 'serve fewer model versions here, the others with another step'

function tooLarge(revisions: number, what: string): ServeError {
  return new ServeError('MESSAGE_TOO_LARGE', `heartbeat of ${revisions} model versions: ${what}`)
}

/** Tells whether a member speaks our version of the messages. Nothing should be sent to a member that does not. */
export function sharesProtocol(o: Pick<Heartbeat, 'protocol' | 'newestProtocol'>): boolean {
  const { protocol, newestProtocol = protocol } = o
  return protocol <= MESSAGE_PROTOCOL_VERSION && MESSAGE_PROTOCOL_VERSION <= newestProtocol
}

/**
 * Decodes a heartbeat. Fields and transports that only newer members know are left out. On the wire the member is `peer` and its
 * transports are `bearers`. If the member shares no version with us, only its id, role, versions and revisions are read.
 *
 * @throws ServeError MALFORMED_MESSAGE that names the field.
 */
export function decodeHeartbeat(bytes: Uint8Array): SentHeartbeat {
  const said = readObject(bytes)
  const protocols = readProtocols(said)
  const { protocol } = protocols
  const fields = sharesProtocol(protocols) ? said : { ...said, ...UNREAD }
  const member = text(fields, 'peer')
  if (member === '' || Buffer.byteLength(member) > MEMBER_ID_LIMIT_BYTES) {
    throw wrong('peer', member, `1 to ${MEMBER_ID_LIMIT_BYTES} bytes`)
  }
  const role = fields['role']
  if (role !== 'step' && role !== 'router') throw wrong('role', role, 'step or router')
  return {
    member,
    role,
    sequence: integer(fields, 'sequence'),
    description: text(fields, 'description'),
    inFlight: integer(fields, 'inFlight'),
    queued: integer(fields, 'queued'),
    freeSlots: integer(fields, 'freeSlots'),
    freeBytes: integer(fields, 'freeBytes'),
    unaskedBytes: integer(fields, 'unaskedBytes'),
    draining: boolean(fields, 'draining'),
    transports: list(fields, 'bearers').filter((name) => name === 'nats' || name === 'tcp'),
    ...(fields['revisions'] !== undefined && {
      revisions: list(fields, 'revisions').map(toRevision),
    }),
    protocol,
    ...('newestProtocol' in protocols && protocols),
    ...readDirect(fields['direct']),
  }
}

function readDirect(direct: unknown): Pick<Heartbeat, 'direct'> {
  if (direct === undefined) return {}
  if (!isFields(direct)) throw wrong('direct', direct, 'an object')
  return { direct: { address: text(direct, 'address'), key: text(direct, 'key') } }
}

/** Values in place of fields that another version of the protocol may write differently. */
const UNREAD: Fields = {
  sequence: 0,
  description: '',
  inFlight: 0,
  queued: 0,
  freeSlots: 0,
  freeBytes: 0,
  unaskedBytes: 0,
  draining: false,
  bearers: [],
  direct: undefined,
}

function readProtocols(fields: Fields): Pick<Heartbeat, 'protocol' | 'newestProtocol'> {
  const protocol = integer(fields, 'protocol')
  if (fields['newestProtocol'] === undefined) return { protocol }
  return { protocol, newestProtocol: integer(fields, 'newestProtocol') }
}

function readObject(bytes: Uint8Array): Fields {
  if (bytes.byteLength > HEARTBEAT_LIMIT_BYTES) {
    throw malformedField(
      'heartbeat',
      `${bytes.byteLength} bytes, want at most ${HEARTBEAT_LIMIT_BYTES}`,
    )
  }
  const value = parse(bytes)
  if (!isFields(value)) throw wrong('heartbeat', value, 'an object')
  return value
}

function parse(bytes: Uint8Array): unknown {
  try {
    return parseBoundedJson(bytes, MAX_VALUES)
  } catch (error) {
    throw malformedField('heartbeat', ServeError.from(error).message)
  }
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function text(fields: Fields, field: string): string {
  const value = fields[field]
  if (typeof value === 'string') return value
  throw wrong(field, value, 'a string')
}

function integer(fields: Fields, field: string): number {
  return toInteger(fields[field], field)
}

function toInteger(value: unknown, field: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw wrong(field, value, 'an integer of at least 0')
}

function boolean(fields: Fields, field: string): boolean {
  const value = fields[field]
  if (typeof value === 'boolean') return value
  throw wrong(field, value, 'true or false')
}

function list(fields: Fields, field: string): readonly unknown[] {
  const value = fields[field]
  if (!Array.isArray(value)) throw wrong(field, value, 'a list')
  if (value.length <= HEARTBEAT_REVISIONS) return value
  throw malformedField(field, `${value.length} of them, want at most ${HEARTBEAT_REVISIONS}`)
}

function toRevision(value: unknown, index: number): readonly [string, number, string] {
  const field = `revisions[${index}]`
  if (!Array.isArray(value) || value.length !== 3) {
    throw wrong(field, value, '[model, version, revision]')
  }
  const [model, version, revision]: readonly unknown[] = value
  if (typeof model !== 'string') throw wrong(`${field}[0]`, model, 'a string')
  if (typeof revision !== 'string') throw wrong(`${field}[2]`, revision, 'a string')
  return [model, toInteger(version, `${field}[1]`), revision]
}

function wrong(field: string, value: unknown, want: string): ServeError {
  const got = typeof value === 'number' ? String(value) : kindOf(value)
  return malformedField(field, `got ${got}, want ${want}`)
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'a list' : typeof value
}
