export const OPEN_METRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

/** Tells whether a scraper, by its header `accept`, prefers OpenMetrics to Prometheus' own text. A Prometheus does. */
export function prefersOpenMetrics(accept = ''): boolean {
  const quality = qualityOf(accept, 'application/openmetrics-text')
  return quality > 0 && quality >= qualityOf(accept, 'text/plain')
}

/** @returns from 0 to 1; 0 for a type that is not named. */
function qualityOf(accept: string, type: string): number {
  let best = 0
  for (const item of accept.toLowerCase().split(',')) {
    const [name, ...parameters] = item.split(';').map((part) => part.trim())
    if (name !== type) continue
    const written = parameters.find((one) => one.startsWith('q='))
    const quality = written === undefined ? 1 : Number(written.slice(2))
    if (quality > best) best = quality
  }
  return best
}

/**
 * Converts Prometheus' text to OpenMetrics: each series keeps its name, so that dashboards work with both. A counter there has a
 * name that ends with `_total`; Triton's do not, and have no type.
 *
 * @param text - of format 0.0.4, `# HELP` before `# TYPE` of each family; exemplars at the ends of its lines stay.
 * @see OpenMetrics 1.0.0, text format
 */
export function toOpenMetrics(text: string): string {
  const lines: string[] = []
  let help = ''
  for (const line of text.split('\n')) {
    if (line.startsWith('# HELP ')) help = line.slice(7)
    else if (line.startsWith('# TYPE ')) lines.push(...toMetadata(help, line.slice(7)))
    else if (line !== '') lines.push(toCanonical(line))
  }
  return `${lines.join('\n')}\n# EOF\n`
}

function toMetadata(named: string, typed: string): readonly string[] {
  const [name = '', type = ''] = typed.split(' ')
  const isNamedTotal = name.endsWith('_total')
  const family = type === 'counter' && isNamedTotal ? name.slice(0, -'_total'.length) : name
  const help = named.slice(name.length).replaceAll('"', String.raw`\"`)
  return [
    `# HELP ${family}${help}`,
    `# TYPE ${family} ${type === 'counter' && !isNamedTotal ? 'unknown' : type}`,
  ]
}

/** Bounds and quantiles are numbers with a point. In a label's value each quotation mark has a backslash before it. */
function toCanonical(line: string): string {
  return line.replace(/([{,](?:le|quantile)=")(-?\d+)"/, '$1$2.0"')
}
