import { Counter, Gauge, Histogram, Registry } from 'prom-client'

/** A value for each label name. */
export type Labels<L extends string> = Readonly<Record<L, string>>

export interface MetricOptions<L extends string> {
  readonly name: string
  readonly help: string
  /** Absent for a metric that is one series, which then starts at 0. */
  readonly labels?: readonly L[]
}

/** Only goes up. A series exists, at 0, from `init` or its first `add` on. */
export interface CounterMetric<L extends string> {
  init(labels: Labels<L>): void
  /** @param amount - 1 if absent, never below 0. */
  add(labels: Labels<L>, amount?: number): void
}

export interface GaugeMetric<L extends string> {
  set(labels: Labels<L>, value: number): void
  /** @param amount - below 0 to go down. */
  add(labels: Labels<L>, amount: number): void
}

export interface HistogramMetric<L extends string> {
  init(labels: Labels<L>): void
  observe(labels: Labels<L>, value: number): void
}

/** One series of a metric that is read at each scrape from the owner of the value. */
export interface MetricReading<L extends string> {
  readonly labels: Labels<L>
  readonly value: number
}

interface ReadOption<L extends string> {
  /** Reads the values. A read that waits delays the scrape; one that throws fails it. */
  readonly read: () => Iterable<MetricReading<L>> | Promise<Iterable<MetricReading<L>>>
}

/** The metrics of one process part; nothing in it is global. A name can be made once. */
export interface Metrics {
  counter<L extends string = never>(o: MetricOptions<L>): CounterMetric<L>
  gauge<L extends string = never>(o: MetricOptions<L>): GaugeMetric<L>
  /** @param o.buckets - upper bounds, ascending. */
  histogram<L extends string = never>(
    o: MetricOptions<L> & { readonly buckets: readonly number[] },
  ): HistogramMetric<L>
  /** A counter whose series are exactly those that `read` gives at each scrape. */
  readCounter<L extends string = never>(o: MetricOptions<L> & ReadOption<L>): void
  readGauge<L extends string = never>(o: MetricOptions<L> & ReadOption<L>): void
  /** Prometheus text, of `contentType`. */
  render(): Promise<string>
  readonly contentType: string
}

/** Makes an empty set of metrics. */
export function createMetrics(): Metrics {
  const registry = new Registry()
  const toConfig = <L extends string>({ name, help, labels = [] }: MetricOptions<L>) => {
    return { name, help, labelNames: [...labels], registers: [registry] }
  }
  return {
    counter: (o) => {
      const counter = new Counter(toConfig(o))
      return {
        init: (labels) => counter.inc(labels, 0),
        add: (labels, amount = 1) => counter.inc(labels, amount),
      }
    },
    gauge: (o) => {
      const gauge = new Gauge(toConfig(o))
      return {
        set: (labels, value) => gauge.set(labels, value),
        add: (labels, amount) => gauge.inc(labels, amount),
      }
    },
    histogram: (o) => {
      const histogram = new Histogram({ ...toConfig(o), buckets: [...o.buckets] })
      return {
        init: (labels) => histogram.zero(labels),
        observe: (labels, value) => histogram.observe(labels, value),
      }
    },
    readCounter: (o) => {
      const collect = async (): Promise<void> => {
        const readings = await o.read()
        // A metric without labels keeps its one series at 0; reset() drops those of the others.
        counter.reset()
        for (const { labels, value } of readings) counter.inc(labels, value)
      }
      const counter = new Counter({ ...toConfig(o), collect })
    },
    readGauge: (o) => {
      const collect = async (): Promise<void> => {
        const readings = await o.read()
        gauge.reset()
        for (const { labels, value } of readings) gauge.set(labels, value)
      }
      const gauge = new Gauge({ ...toConfig(o), collect })
    },
    render: () => registry.metrics(),
    contentType: registry.contentType,
  }
}
