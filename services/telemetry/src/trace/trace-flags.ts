import { type FlagTable, type FlagValues, flagRefusal, type TracingSettings } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { toLevels } from './read-trace-changes.ts'
import { TraceSettings, type TraceValues } from './trace-settings.ts'

/** tritonserver's flags of traces, the deprecated ones too. */
export const TRACE_FLAGS = {
  'trace-config': {
    type: 'string',
    repeatable: true,
    description:
      'Traces: mode=triton or opentelemetry, level=OFF, TIMESTAMPS or TENSORS (repeat it for both), rate=N (each Nth request), count=N; triton,file=PATH and triton,log-frequency=N; opentelemetry,url=URL and opentelemetry,resource=service.name=NAME.',
  },
  'trace-file': {
    type: 'string',
    path: 'file',
    description: 'Deprecated name of --trace-config triton,file=PATH.',
  },
  'trace-level': {
    type: 'string',
    repeatable: true,
    description: 'Deprecated name of --trace-config level=LEVEL.',
  },
  'trace-rate': { type: 'int', description: 'Deprecated name of --trace-config rate=N.' },
  'trace-count': { type: 'int', description: 'Deprecated name of --trace-config count=N.' },
  'trace-log-frequency': {
    type: 'int',
    description: 'Deprecated name of --trace-config triton,log-frequency=N.',
  },
} as const satisfies FlagTable

export type TraceFlags = FlagValues<typeof TRACE_FLAGS>

/** Destination of traces: files, whose settings clients may read and change, or a collector, which the command line sets. */
export type TraceConfig =
  | { readonly mode: 'triton'; readonly settings: TraceSettings }
  | {
      readonly mode: 'opentelemetry'
      /** Base of OTLP/HTTP; undefined for no spans. */
      readonly otlpEndpoint: string | undefined
      readonly serviceName: string | undefined
      readonly sampleRatio: number
    }

const NAMES = [
  'mode',
  'level',
  'rate',
  'count',
  'triton,file',
  'triton,log-frequency',
  'opentelemetry,url',
  'opentelemetry,resource',
] as const
type Name = (typeof NAMES)[number]

const FLAG = '--trace-config'
const MAX_UINT32 = 2 ** 32 - 1

/** @throws ServeError FLAG_INVALID */
export function readTraceFlags(flags: TraceFlags): TraceConfig {
  const written = readNames(flags)
  const mode = lastOf(written, 'mode', 'triton')
  const values = readValues(written)
  if (mode === 'opentelemetry') return toCollector(written, values)
  if (mode !== 'triton') throw flagRefusal(FLAG, `got mode=${mode}, want triton or opentelemetry`)
  const file = lastOf(written, 'triton,file', '')
  if (file === '' && values.level.length > 0) {
    throw flagRefusal(FLAG, 'got a level and no file, want triton,file=PATH')
  }
  return { mode, settings: new TraceSettings({ values, file }) }
}

/** Chooses the destination of spans. In the mode opentelemetry flags override the environment. @throws ServeError FLAG_INVALID */
export function withTraceFlags(settings: TracingSettings, flags: TraceFlags): TracingSettings {
  const trace = readTraceFlags(flags)
  if (trace.mode === 'triton') return settings
  const { otlpEndpoint, sampleRatio, serviceName = settings.serviceName } = trace
  return { otlpEndpoint, sampleRatio, serviceName }
}

type Written = ReadonlyMap<string, readonly string[]>

function lastOf(written: Written, name: Name, preset: string): string {
  return written.get(name)?.at(-1) ?? preset
}

function readValues(written: Written): TraceValues {
  const number = (name: Name, preset: number, min: number, max: number): number =>
    toNumber(name, lastOf(written, name, String(preset)), min, max)
  return {
    level: readLevels(written.get('level') ?? []),
    rate: number('rate', 1000, 0, MAX_UINT32),
    count: number('count', -1, -1, 2 ** 31 - 1),
    logFrequency: number('triton,log-frequency', 0, 0, MAX_UINT32),
  }
}

function toCollector(written: Written, { level, rate, count }: TraceValues): TraceConfig {
  if (count !== -1) throw flagRefusal(FLAG, 'got count, want mode=triton with it')
  const isOff = level.length === 0 || rate === 0
  const url = lastOf(written, 'opentelemetry,url', 'http://localhost:4318/v1/traces')
  return {
    mode: 'opentelemetry',
    otlpEndpoint: isOff ? undefined : url.replace(/\/v1\/traces\/?$/, ''),
    serviceName: readServiceName(written.get('opentelemetry,resource') ?? []),
    sampleRatio: isOff ? 0 : 1 / rate,
  }
}

/** Reads what came for each name, deprecated flags first. */
function readNames(flags: TraceFlags): Written {
  const given: (readonly [string, string])[] = []
  const add = (name: Name, value: string | number | undefined): void => {
    if (value !== undefined) given.push([name, String(value)])
  }
  add('triton,file', flags['trace-file'])
  add('triton,log-frequency', flags['trace-log-frequency'])
  add('rate', flags['trace-rate'])
  add('count', flags['trace-count'])
  for (const level of flags['trace-level']) add('level', level)
  for (const text of flags['trace-config']) {
    const [, name = '', value = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? []
    const known = NAMES.find((one) => one === name)
    if (known === undefined) {
      throw flagRefusal(FLAG, `got "${text}", want ${NAMES.join('=..., ')}=...`)
    }
    add(known, value)
  }
  const groups = new Map<string, string[]>()
  for (const [name, value] of given) groups.set(name, [...(groups.get(name) ?? []), value])
  return groups
}

function readLevels(words: readonly string[]) {
  const unknown = words.find((word) => !['OFF', 'TIMESTAMPS', 'TENSORS'].includes(word))
  if (unknown !== undefined) {
    throw flagRefusal(FLAG, `got level=${unknown}, want OFF, TIMESTAMPS or TENSORS`)
  }
  try {
    return toLevels(words)
  } catch (cause) {
    throw flagRefusal(FLAG, ServeError.from(cause).message, cause)
  }
}

function toNumber(name: string, text: string, min: number, max: number): number {
  const value = Number(text)
  if (/^-?\d+$/.test(text) && value >= min && value <= max) return value
  throw flagRefusal(FLAG, `got ${name}=${text}, want a whole number from ${min} to ${max}`)
}

function readServiceName(resources: readonly string[]): string | undefined {
  let name: string | undefined
  for (const resource of resources) {
    const [, key, value = ''] = /^([^=]+)=(.+)$/s.exec(resource) ?? []
    if (key !== 'service.name') {
      throw flagRefusal(FLAG, `got resource=${resource}, want resource=service.name=NAME`)
    }
    name = value
  }
  return name
}
