import type { LogSettings } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { parseJson } from '@tutti/protocol'
import type { ControlCall, ControlCalls } from '../request/control-calls.ts'
import {
  readLogChanges,
  type SettingTexts,
  type SettingValue,
  writtenLogSettings,
} from '../settings/log-settings.ts'
import { requireOneProcess, requireSettings } from '../settings/require-settings.ts'
import { refuseForeignPage } from './refuse-foreign-page.ts'
import type { RestCall } from './rest-call.ts'
import { jsonReply, type RestReply } from './rest-reply.ts'
import type { RestRoute } from './rest-route.ts'

/** Settings are short; what is longer is parsed by nobody. */
const MAX_BODY_BYTES = 64 * 1024

const NON = {
  boolean: 'attempt to access JSON non-boolean as boolean',
  int32: 'attempt to access JSON non-unsigned-integer as unsigned-integer',
  string: 'attempt to access JSON non-string as string',
} as const

const TEXTS: SettingTexts = {
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
}

/** The paths that read and set what the server logs. Both only for those who may change the server: they tell its files. */
export function settingsRoutes({
  control,
  logSettings,
}: SettingsRouteOptions): readonly RestRoute[] {
  const answerLog = async (call: RestCall): Promise<RestReply> => {
    const settings = requireSettings(logSettings, 'log settings')
    if (call.isChange) {
      const changes = readLogChanges(await readMembers(call, 'log settings'), TEXTS)
      Object.assign(settings, changes)
    }
    return jsonReply(writtenLogSettings(settings))
  }
  return [settingsRoute(control, '/v2/logging', 'log settings', answerLog)]
}

export function settingsRoute(
  control: ControlCalls,
  path: string,
  action: ControlCall['action'],
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

/**
 * The members of a body; `null` counts as absent, and what is no object has none, as in Triton.
 *
 * @throws ServeError MALFORMED_MESSAGE, MESSAGE_TOO_LARGE, UNSUPPORTED over several processes.
 */
async function readMembers(
  call: RestCall,
  what: 'log settings',
): Promise<ReadonlyMap<string, SettingValue>> {
  requireOneProcess(call.backend, what)
  const { value } = parseJson(await call.body(MAX_BODY_BYTES))
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return new Map()
  return new Map(
    Object.entries(value).flatMap(([name, item]) =>
      item === null && name !== 'log_file' ? [] : [[name, toSetting(item)] as const],
    ),
  )
}

function toSetting(value: unknown): SettingValue {
  const isOne = typeof value === 'boolean' || typeof value === 'number' || typeof value === 'string'
  return isOne ? value : undefined
}

function malformed(text: string): ServeError {
  return new ServeError('MALFORMED_MESSAGE', text, { code: 'INTERNAL' })
}
