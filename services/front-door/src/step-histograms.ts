import type { MetricFamily, MetricSeries } from './metrics-text.ts'

/** Names one step of one ensemble in the metrics; a request to the model itself has neither ensemble nor step. */
export interface StepLabels {
  readonly ensemble: string
  readonly step: string
  readonly model: string
}

/** One step request, with the three times measured apart. */
export interface StepObservation extends StepLabels {
  readonly queueS: number
  readonly transferS: number
  readonly computeS: number
}

/** 0.1 ms to 30 s: a step in the same process takes less than a millisecond, a heavy model seconds. */
const BUCKETS_S = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
  30,
] as const

const PARTS = [
  ['queue', 'Time that a step request waited for an instance'],
  ['transfer', "Time that a step's tensors were on their way"],
  ['compute', 'Time that a step took to compute'],
] as const

type Part = (typeof PARTS)[number][0]

interface Step {
  readonly labels: StepLabels
  readonly parts: Readonly<Record<Part, Histogram>>
}

/**
 * The histograms of `tutti_step_{queue,transfer,compute}_seconds`, counted and printed here: prom-client takes several
 * microseconds for the three observations of a request, as it sorts and hashes their labels each time.
 */
export class StepHistograms {
  readonly #steps = new Map<string, Step>()

  /** The step's series appear, at 0. */
  add(labels: StepLabels): void {
    this.#step(labels)
  }

  /** Drops the step's series. */
  remove(labels: StepLabels): void {
    this.#steps.delete(stepKey(labels))
  }

  readonly observe = (o: StepObservation): void => {
    const { queue, transfer, compute } = this.#step(o).parts
    queue.observe(o.queueS)
    transfer.observe(o.transferS)
    compute.observe(o.computeS)
  }

  read(): readonly MetricFamily[] {
    const steps = [...this.#steps.values()]
    return PARTS.map(([part, help]) => ({
      name: `tutti_step_${part}_seconds`,
      help,
      type: 'histogram',
      series: steps.flatMap(({ labels, parts }) => parts[part].read(labels)),
    }))
  }

  #step(labels: StepLabels): Step {
    const key = stepKey(labels)
    const known = this.#steps.get(key)
    if (known !== undefined) return known
    const { ensemble, step, model } = labels
    const parts = { queue: new Histogram(), transfer: new Histogram(), compute: new Histogram() }
    const made = { labels: { ensemble, step, model }, parts }
    this.#steps.set(key, made)
    return made
  }
}

/** A line break occurs in no name, so that the parts cannot run into one another. */
function stepKey({ ensemble, step, model }: StepLabels): string {
  return `${ensemble}\n${step}\n${model}`
}

class Histogram {
  /** By bucket, each value once; the last one is what is over all bounds. */
  readonly #counts = [...BUCKETS_S, Number.POSITIVE_INFINITY].map(() => 0)
  #sum = 0

  observe(value: number): void {
    let bucket = 0
    for (const bound of BUCKETS_S) {
      if (value <= bound) break
      bucket += 1
    }
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1
    this.#sum += value
  }

  read({ ensemble, step, model }: StepLabels): MetricSeries[] {
    const labels = [
      ['ensemble', ensemble],
      ['step', step],
      ['model', model],
    ] as const
    let count = 0
    const buckets = this.#counts.map((counted, i): MetricSeries => {
      count += counted
      const le = ['le', i < BUCKETS_S.length ? String(BUCKETS_S[i]) : '+Inf'] as const
      return { suffix: '_bucket', labels: [le, ...labels], value: count }
    })
    return [
      ...buckets,
      { suffix: '_sum', labels, value: this.#sum },
      { suffix: '_count', labels, value: count },
    ]
  }
}
