/** A request that is an example of what a bucket counts. */
export interface Exemplar {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** The value that was observed, in the unit of the family. */
  readonly value: number
  /** Milliseconds since the epoch. */
  readonly atMs: number
}

/** One series of a metric family: its labels in print order, and its value. */
export interface MetricSeries {
  readonly labels: readonly (readonly [name: string, value: string])[]
  readonly value: number
  /** Part of a histogram or summary that the series is; absent for other types. */
  readonly suffix?: '_bucket' | '_sum' | '_count'
  /** The exemplar of a bucket; printed for OpenMetrics alone. */
  readonly exemplar?: Exemplar | undefined
}

/** A metric as Prometheus text has it. */
export interface MetricFamily {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary'
  readonly series: readonly MetricSeries[]
}

/**
 * Prints families in the Prometheus text format. Written by hand because Triton's series carry labels that differ
 * from model to model (`metric_tags`), which prom-client does not allow.
 *
 * @param o.hasExemplars - for a text that becomes OpenMetrics: the format itself has none.
 * @see Prometheus exposition formats, text-based format 0.0.4
 */
export function formatMetrics(
  families: readonly MetricFamily[],
  { hasExemplars = false }: { readonly hasExemplars?: boolean } = {},
): string {
  return families.map((family) => formatFamily(family, hasExemplars)).join('')
}

function formatFamily({ name, help, type, series }: MetricFamily, hasExemplars: boolean): string {
  const lines = [`# HELP ${name} ${escapeHelp(help)}`, `# TYPE ${name} ${type}`]
  for (const { labels, value, suffix = '', exemplar } of series) {
    const example = hasExemplars && exemplar ? formatExemplar(exemplar) : ''
    lines.push(`${name}${suffix}${formatLabels(labels)} ${formatValue(value)}${example}`)
  }
  return `${lines.join('\n')}\n`
}

function formatExemplar({ traceId, value, atMs }: Exemplar): string {
  return ` # {trace_id="${traceId}"} ${formatValue(value)} ${atMs / 1000}`
}

function formatLabels(labels: MetricSeries['labels']): string {
  if (labels.length === 0) return ''
  return `{${labels.map(([name, value]) => `${name}="${escapeLabel(value)}"`).join(',')}}`
}

function formatValue(value: number): string {
  if (Number.isFinite(value)) return String(value)
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', String.raw`\\`).replaceAll('\n', String.raw`\n`)
}

function escapeLabel(text: string): string {
  return escapeHelp(text).replaceAll('"', String.raw`\"`)
}

/** Converts a text to a label name: characters that a label name cannot hold become `_`. */
export function toLabelName(text: string): string {
  return text.replaceAll(/[^a-zA-Z0-9_]/g, '_')
}
