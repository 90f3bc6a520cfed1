import type { ChangeableLogSettings, LogSettings } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { parseJson } from '@tutti/protocol'
import {
  type ControlCalls,
  readLogChanges,
  requireOneProcess,
  requireSettings,
  requireTracedModel,
  type SettingsAction,
  type SettingTexts,
  type SettingValue,
  writtenLogSettings,
} from '@tutti/serving'
import {
  readTraceChanges,
  type TraceChanges,
  type TraceSettings,
  type WrittenTraceSettings,
  writtenTraceSettings,
} from '@tutti/telemetry'
import { jsonReply, type RestReply } from '../answers/rest-reply.ts'
import { refuseForeignPage } from '../call/refuse-foreign-page.ts'
import type { RestCall } from '../call/rest-call.ts'
import type { RestRoute } from '../call/rest-route.ts'

/** Settings are short; what is longer is parsed by nobody. */
const MAX_BODY_BYTES = 64 * 1024

const NON = {
  boolean: 'attempt to access JSON non-boolean as boolean',
  int32: 'attempt to access JSON non-unsigned-integer as unsigned-integer',
  string: 'attempt to access JSON non-string as string',
} as const

const LOG_TEXTS: SettingTexts = {
  refuse: (_name, want) => malformed(NON[want]),
  format: (got) => {
    const text = `invalid argument for --log_format, got: ${got}`
    return new ServeError('INVALID_PARAMETER', text, { code: 'UNAVAILABLE' })
  },
}

export interface SettingsRouteOptions {
  readonly control: ControlCalls
  /** Absent: not offered. */
  readonly logSettings?: LogSettings | undefined
  /** Absent: not offered. */
  readonly traceSettings?: TraceSettings | undefined
}

/** The paths that read and set what the server logs and traces. All only for those who may change the server: they tell its files. */
export function settingsRoutes(o: SettingsRouteOptions): readonly RestRoute[] {
  const { control, logSettings, traceSettings } = o
  const answerLog = async (call: RestCall): Promise<RestReply> => {
    const settings = requireSettings(logSettings, 'log settings')
    if (call.isChange) {
      Object.assign(settings, parseLogBody(await readBody(call, 'log settings')))
    }
    return jsonReply(writtenLogSettings(settings))
  }
  const answerTrace = async (call: RestCall): Promise<RestReply> => {
    const settings = requireSettings(traceSettings, 'trace settings')
    const { model = '' } = call.parameters
    requireTracedModel(call.backend, model)
    if (call.isChange) {
      settings.change(model, parseTraceBody(await readBody(call, 'trace settings')))
    }
    const written = [...writtenTraceSettings(settings, model)]
    return jsonReply(
      Object.fromEntries(written.map(([name, words]) => [name, isList(name) ? words : words[0]])),
    )
  }
  return [
    settingsRoute(control, '/v2/logging', 'log settings', answerLog),
    settingsRoute(control, '/v2/trace/setting', 'trace settings', answerTrace),
    settingsRoute(control, '/v2/models/:model/trace/setting', 'trace settings', answerTrace),
  ]
}

function settingsRoute(
  control: ControlCalls,
  path: string,
  action: SettingsAction,
  answer: (call: RestCall) => Promise<RestReply>,
): RestRoute {
  return {
    path,
    methods: ['GET', 'POST'],
    answer: (call) => {
      const { model } = call.parameters
      return control.run({ ...call.caller, action, model }, () => {
        if (call.isChange) refuseForeignPage(call.caller.headers)
        return answer(call)
      })
    },
  }
}

/** @throws ServeError MESSAGE_TOO_LARGE, UNSUPPORTED over several processes. */
async function readBody(call: RestCall, what: SettingsAction): Promise<Uint8Array> {
  requireOneProcess(call.backend, what)
  return await call.body(MAX_BODY_BYTES)
}

/** @throws ServeError MALFORMED_MESSAGE, INVALID_PARAMETER, UNSUPPORTED */
export function parseLogBody(body: Uint8Array): Partial<ChangeableLogSettings> {
  return readLogChanges(toLogSettings(membersOf(body)), LOG_TEXTS)
}

/** @throws ServeError MALFORMED_MESSAGE, INVALID_PARAMETER, UNSUPPORTED */
export function parseTraceBody(body: Uint8Array): TraceChanges {
  return readTraceChanges(toTraceSettings(membersOf(body)))
}

/** What is no object has no members, as in Triton. */
function membersOf(body: Uint8Array): readonly (readonly [string, unknown])[] {
  const { value } = parseJson(body)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return []
  return Object.entries(value)
}

/** `null` counts as absent. */
function toLogSettings(
  members: readonly (readonly [string, unknown])[],
): ReadonlyMap<string, SettingValue> {
  return new Map(
    members.flatMap(([name, item]) =>
      item === null && name !== 'log_file' ? [] : [[name, toSetting(item)] as const],
    ),
  )
}

function toSetting(value: unknown): SettingValue {
  const isOne = typeof value === 'boolean' || typeof value === 'number' || typeof value === 'string'
  return isOne ? value : undefined
}

const TRACE_NAMES: ReadonlySet<string> = new Set([
  'trace_level',
  'trace_rate',
  'trace_count',
  'log_frequency',
])

/** `null` returns to what is inherited. @throws ServeError MALFORMED_MESSAGE */
function toTraceSettings(members: readonly (readonly [string, unknown])[]): WrittenTraceSettings {
  return new Map(
    members.flatMap(([name, item]) => {
      if (name === 'trace_file') return [[name, []] as const]
      return TRACE_NAMES.has(name) ? [[name, toWords(name, item)] as const] : []
    }),
  )
}

function toWords(name: string, item: unknown): readonly string[] {
  if (item === null) return []
  if (isList(name) && !Array.isArray(item)) {
    throw malformed('attempt to access JSON non-array as array')
  }
  const words: readonly unknown[] = isList(name) && Array.isArray(item) ? item : [item]
  const texts = words.filter((word) => typeof word === 'string')
  if (texts.length < words.length) throw malformed(NON.string)
  // As Triton: no level at all is OFF.
  return isList(name) && texts.length === 0 ? ['OFF'] : texts
}

function isList(name: string): boolean {
  return name === 'trace_level'
}

function malformed(text: string): ServeError {
  return new ServeError('MALFORMED_MESSAGE', text, { code: 'INTERNAL' })
}
