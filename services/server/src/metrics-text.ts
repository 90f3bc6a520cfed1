/** One series of a metric family: its labels in print order, and its value. */
export interface MetricSeries {
  readonly labels: readonly (readonly [name: string, value: string])[]
  readonly value: number
  /** Which part of a histogram or summary it is; absent for other types. */
  readonly suffix?: '_bucket' | '_sum' | '_count'
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
 * @see Prometheus exposition formats, text-based format 0.0.4
 */
export function formatMetrics(families: readonly MetricFamily[]): string {
  return families.map((family) => formatFamily(family)).join('')
}

function formatFamily({ name, help, type, series }: MetricFamily): string {
  const lines = [`# HELP ${name} ${escapeHelp(help)}`, `# TYPE ${name} ${type}`]
  for (const { labels, value, suffix = '' } of series) {
    lines.push(`${name}${suffix}${formatLabels(labels)} ${formatValue(value)}`)
  }
  return `${lines.join('\n')}\n`
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

/** `text` as a label name: what a label name cannot hold becomes `_`. */
export function toLabelName(text: string): string {
  return text.replaceAll(/[^a-zA-Z0-9_]/g, '_')
}
