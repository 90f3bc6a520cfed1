import { type FlagTable, type FlagValues, flagRefusal } from '@tutti/chassis'

/** tritonserver's flag of metrics. */
export const METRICS_FLAGS = {
  'metrics-config': {
    type: 'string',
    repeatable: true,
    description:
      'Latencies in metrics: counter_latencies=true (default) or false, summary_latencies and histogram_latencies=true or false (default), summary_quantiles=0.5:0.05,0.9:0.01 and so on.',
  },
} as const satisfies FlagTable

/** How latencies of models are shown. */
export interface LatencyMetrics {
  readonly hasCounters: boolean
  /** Quantiles of summaries; undefined for no summaries. */
  readonly quantiles: readonly number[] | undefined
  /** Whether decoupled models have a histogram of their first responses. */
  readonly hasHistograms: boolean
}

const FLAG = '--metrics-config'
const NAMES = [
  'counter_latencies',
  'summary_latencies',
  'summary_quantiles',
  'histogram_latencies',
] as const
/** Default quantiles with the errors that Triton tolerates. Quantiles here are exact for the kept samples. */
const QUANTILES = '0.5:0.05,0.9:0.01,0.95:0.001,0.99:0.001,0.999:0.001'

/** @throws ServeError FLAG_INVALID */
export function readMetricsFlags(flags: FlagValues<typeof METRICS_FLAGS>): LatencyMetrics {
  const given = new Map<string, string>()
  for (const text of flags['metrics-config']) {
    const [, name = '', value = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? []
    if (!NAMES.some((known) => known === name)) {
      throw flagRefusal(FLAG, `got "${text}", want ${NAMES.join('=..., ')}=...`)
    }
    given.set(name, value)
  }
  const quantiles = readQuantiles(given.get('summary_quantiles') ?? QUANTILES)
  return {
    hasCounters: readSwitch('counter_latencies', given.get('counter_latencies') ?? 'true'),
    hasHistograms: readSwitch('histogram_latencies', given.get('histogram_latencies') ?? 'false'),
    quantiles: readSwitch('summary_latencies', given.get('summary_latencies') ?? 'false')
      ? quantiles
      : undefined,
  }
}

function readSwitch(name: string, text: string): boolean {
  const word = text.toLowerCase()
  if (word === 'true' || word === '1') return true
  if (word === 'false' || word === '0') return false
  throw flagRefusal(FLAG, `got ${name}=${text}, want true or false`)
}

function readQuantiles(text: string): readonly number[] {
  return text.split(',').map((pair) => {
    const [, quantile = '', error = ''] = /^\s*([\d.]+)\s*:\s*([\d.]+)\s*$/.exec(pair) ?? []
    const value = Number(quantile)
    if (quantile !== '' && value >= 0 && value <= 1 && Number(error) <= 1) return value
    throw flagRefusal(FLAG, `got summary_quantiles=${text}, want QUANTILE:ERROR, from 0 to 1 each`)
  })
}
