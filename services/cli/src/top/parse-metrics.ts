/** One line of a server's metrics. */
export interface Sample {
  readonly name: string
  readonly labels: ReadonlyMap<string, string>
  readonly value: number
}

const NAME = /[a-zA-Z_:][\w:]*/y
const LABEL = /\s*([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*,?/y
const VALUE = /\s*\}?\s*(\S+)/y
const ESCAPES: Readonly<Record<string, string>> = { n: '\n' }
const INFINITIES: ReadonlyMap<string, number> = new Map([
  ['+Inf', Number.POSITIVE_INFINITY],
  ['-Inf', Number.NEGATIVE_INFINITY],
])

/**
 * Parses the Prometheus text format. Lines in other forms are left out.
 *
 * @param isWanted - tells by a metric's name whether its samples are wanted.
 */
export function* parseMetrics(
  text: string,
  isWanted: (name: string) => boolean,
): Generator<Sample, void, undefined> {
  for (const line of text.split('\n')) {
    const [name] = match(NAME, line, 0) ?? []
    if (name === undefined || !isWanted(name)) continue
    const sample = parseSample(line, name)
    if (sample !== undefined) yield sample
  }
}

function parseSample(line: string, name: string): Sample | undefined {
  const labels = new Map<string, string>()
  let at = name.length
  if (line[at] === '{') {
    at += 1
    for (let found = match(LABEL, line, at); found; found = match(LABEL, line, at)) {
      const [all, label = '', value = ''] = found
      labels.set(label, unescape(value))
      at += all.length
    }
  }
  const [, number = ''] = match(VALUE, line, at) ?? []
  const value = INFINITIES.get(number) ?? Number(number)
  return number === '' || Number.isNaN(value) ? undefined : { name, labels, value }
}

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(text)
}

function unescape(value: string): string {
  return value.replace(/\\(.)/gs, (_, one: string) => ESCAPES[one] ?? one)
}
