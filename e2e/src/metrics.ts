import { restCall } from './rest-call.ts'
import type { Target } from './serving.ts'

type MetricsTarget = Pick<Target, 'metricsPort'> & { readonly address?: string }
type Labels = Readonly<Record<string, string>>

interface Sample {
  readonly name: string
  readonly labels: Labels
  readonly value: number
}

export type Scrape = Awaited<ReturnType<typeof scrape>>

/** Reads what the metrics endpoint says now. @param target - of this machine, unless it has an address. */
export async function scrape({ metricsPort, address }: MetricsTarget) {
  const answer = await restCall(metricsPort, 'GET', '/metrics', { address })
  const text = answer.body.toString()
  const samples = text.split('\n').flatMap(parseSample)
  return {
    /** Adds up the values of all samples with this name. */
    sum: (name: string): number =>
      samples.reduce((sum, sample) => sum + (sample.name === name ? sample.value : 0), 0),
    /** The one sample with this name that carries these labels, perhaps among others. @throws Error if it is not one. */
    value: (name: string, labels: Labels = {}): number => {
      const found = samples.filter((sample) => sample.name === name && carries(sample, labels))
      const [only] = found
      if (only !== undefined && found.length === 1) return only.value
      throw new Error(`${found.length} samples of ${name} ${JSON.stringify(labels)}, want one`)
    },
  }
}

function carries(sample: Sample, labels: Labels): boolean {
  return Object.entries(labels).every(([name, value]) => sample.labels[name] === value)
}

function parseSample(line: string): Sample[] {
  const found = /^(?<name>[a-zA-Z_:][\w:]*)(?:\{(?<labels>.*)\})? (?<value>\S+)$/.exec(line)?.groups
  if (found === undefined) return []
  const { name = '', labels = '', value = '' } = found
  return [{ name, labels: parseLabels(labels), value: Number(value) }]
}

/** As they are written: what is asked for here needs no escapes. */
function parseLabels(text: string): Labels {
  const all = [...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)]
  return Object.fromEntries(all.map(([, name = '', value = '']) => [name, value]))
}
