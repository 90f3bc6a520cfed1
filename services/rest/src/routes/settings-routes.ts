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
  /** The settings of the log; absent: not offered. */
  readonly logSettings?: LogSettings | undefined
  /** The settings of traces in files; absent: not offered. */
  readonly traceSettings?: TraceSettings | undefined
}

/**
 * Builds the routes that read and change the settings of log and traces. Only a caller who may change the server may read them,
 * too: they name files of the server.
 */
export function settingsRoutes(o: SettingsRouteOptions): readonly RestRoute[] {
  const { control, logSettings, traceSettings } = o
  const answerLog: Answer = async (_call, body) => {
    const settings = requireSettings(logSettings, 'log settings')
    if (body !== undefined) Object.assign(settings, parseLogBody(await body()))
    return jsonReply(writtenLogSettings(settings))
  }
  const answerTrace: Answer = async (call, body) => {
    const settings = requireSettings(traceSettings, 'trace settings')
    const { model = '' } = call.parameters
    requireTracedModel(call.backend, model)
    if (body !== undefined) settings.change(model, parseTraceBody(await body()))
    const written = [...writtenTraceSettings(settings, model)]
    return jsonReply(
      Object.fromEntries(written.map(([name, words]) => [name, isList(name) ? words : words[0]])),
    )
  }
  const trace = { group: 'trace', action: 'trace settings', schema: 'TraceSettings' } as const
  return [
    ...settingsOf(control, {
      path: '/v2/logging',
      group: 'logging',
      action: 'log settings',
      summary: 'What is logged',
      schema: 'LogSettings',
      answer: answerLog,
    }),
    ...['/v2/trace/setting', '/v2/models/:model/trace/setting'].flatMap((path) =>
      settingsOf(control, { ...trace, path, summary: 'What is traced', answer: answerTrace }),
    ),
  ]
}

/** @param body - reads the body of a call that changes settings; undefined for one that reads them. */
type Answer = (call: RestCall, body?: () => Promise<Uint8Array>) => Promise<RestReply>

interface SettingsRoute extends Pick<RestRoute, 'path' | 'group'> {
  readonly action: SettingsAction
  readonly summary: string
  readonly schema: 'LogSettings' | 'TraceSettings'
  readonly answer: Answer
}

/** The call that reads settings, and the one that changes them. */
function settingsOf(control: ControlCalls, o: SettingsRoute): readonly RestRoute[] {
  const { path, group, action, summary, schema, answer } = o
  const all = { path, group, admission: 'control' } as const
  const toControl = ({ caller, parameters: { model } }: RestCall) => ({ ...caller, action, model })
  return [
    {
      ...all,
      method: 'GET',
      document: { summary, answer: schema },
      answer: (call) => control.run(toControl(call), () => answer(call)),
    },
    {
      ...all,
      method: 'POST',
      document: {
        summary: 'Changes it; only for those who may load models',
        body: schema,
        answer: schema,
      },
      answer: (call) =>
        control.run(toControl(call), () => {
          refuseForeignPage(call.caller.headers)
          return answer(call, () => readBody(call, action))
        }),
    },
  ]
}

/** @throws ServeError MESSAGE_TOO_LARGE, UNSUPPORTED over several processes. */
async function readBody(call: RestCall, what: SettingsAction): Promise<Uint8Array> {
  requireOneProcess(call.backend, what)
  return await call.body()
}

/** Reads the log settings that a body changes. @throws ServeError MALFORMED_MESSAGE, INVALID_PARAMETER, UNSUPPORTED */
export function parseLogBody(body: Uint8Array): Partial<ChangeableLogSettings> {
  return readLogChanges(toLogSettings(membersOf(body)), LOG_TEXTS)
}

/** Reads the trace settings that a body changes. @throws ServeError MALFORMED_MESSAGE, INVALID_PARAMETER, UNSUPPORTED */
export function parseTraceBody(body: Uint8Array): TraceChanges {
  return readTraceChanges(toTraceSettings(membersOf(body)))
}

/** Reads the members of a body. One that is no object has none, as in Triton. */
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
