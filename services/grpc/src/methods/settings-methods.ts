import type { LogSettings } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  type ControlCall,
  type ControlCalls,
  invalidSetting,
  readLogChanges,
  requireOneProcess,
  requireSettings,
  requireTracedModel,
  type SettingTexts,
  type SettingValue,
  writtenLogSettings,
} from '@tutti/serving'
import { readTraceChanges, type TraceSettings, writtenTraceSettings } from '@tutti/telemetry'
import { type Handler, type MethodRecord, requireLive, unary } from './method.ts'
import { toControlCall } from './repository-methods.ts'

const TEXTS: SettingTexts = {
  refuse: (name, want) => invalidSetting(`expect ${want} for '${name}'`),
  format: (got) => invalidSetting(`invalid argument for log_format, got: ${got}`),
}

/** A setting of the message: one of these, or none. */
interface LogValue {
  readonly bool_param?: boolean
  readonly uint32_param?: number
  readonly string_param?: string
}

export interface SettingsMethodOptions {
  readonly control: ControlCalls
  /** The settings of the log; absent: not offered. */
  readonly logSettings?: LogSettings | undefined
  /** The settings of traces in files; absent: not offered. */
  readonly traceSettings?: TraceSettings | undefined
}

/** Builds the methods that read and change the settings of log and traces. A message without settings only reads. */
export function settingsMethods(o: SettingsMethodOptions): Readonly<Record<string, MethodRecord>> {
  const { control, logSettings, traceSettings } = o
  return {
    LogSettings: {
      group: 'logging',
      admission: 'control',
      serve: settingsHandler(
        control,
        'log settings',
        (request: { settings: Readonly<Record<string, LogValue>> }, call) => {
          const settings = requireSettings(logSettings, 'log settings')
          const wanted = new Map(
            Object.entries(request.settings).map(([name, value]) => [name, toSetting(value)]),
          )
          if (wanted.size > 0) requireOneProcess(call.backend, 'log settings')
          Object.assign(settings, readLogChanges(wanted, TEXTS))
          const written = Object.entries(writtenLogSettings(settings))
          return {
            settings: Object.fromEntries(written.map(([name, value]) => [name, toValue(value)])),
          }
        },
      ),
    },
    TraceSetting: {
      group: 'trace',
      admission: 'control',
      serve: settingsHandler(control, 'trace settings', (request: TraceRequest, { backend }) => {
        const settings = requireSettings(traceSettings, 'trace settings')
        const { model_name: model } = request
        requireTracedModel(backend, model)
        const wanted = Object.entries(request.settings)
        if (wanted.length > 0) requireOneProcess(backend, 'trace settings')
        const written = new Map(wanted.map(([name, { value }]) => [name, value]))
        settings.change(model, readTraceChanges(written))
        return {
          settings: Object.fromEntries(
            [...writtenTraceSettings(settings, model)].map(([name, value]) => [name, { value }]),
          ),
        }
      }),
    },
  }
}

interface TraceRequest {
  readonly model_name: string
  readonly settings: Readonly<Record<string, { readonly value: readonly string[] }>>
}

/** Makes the handler of settings. Its message is read only from callers who may change the server, because answers name files. */
function settingsHandler(
  control: ControlCalls,
  action: ControlCall['action'],
  answer: Parameters<typeof unary>[0],
): Handler {
  const serve = unary((request, call) =>
    control.run(toControlCall(action, call), () => answer(request, call)),
  )
  return (call, definition) => {
    try {
      requireLive(call.backend)
      control.checkCaller(toControlCall(action, call))
    } catch (error) {
      return call.refuse(ServeError.from(error))
    }
    serve(call, definition)
  }
}

function toSetting({ bool_param, uint32_param, string_param }: LogValue): SettingValue {
  return bool_param ?? uint32_param ?? string_param
}

function toValue(value: SettingValue): LogValue {
  if (typeof value === 'boolean') return { bool_param: value }
  if (typeof value === 'number') return { uint32_param: value }
  return value === undefined ? {} : { string_param: value }
}
