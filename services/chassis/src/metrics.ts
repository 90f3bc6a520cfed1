import { Counter, Gauge, Histogram, Registry } from 'prom-client'

/** A value for each label name. */
export type Labels<L extends string> = Readonly<Record<L, string>>

export interface MetricOptions<L extends string> {
  readonly name: string
  readonly help: string
  /** Label names. Absent for a metric with a single series, which starts at 0. */
  readonly labels?: readonly L[]
}

/** Counter, which only goes up. A series exists from its `init` (at 0) or its first `add` on. */
export interface CounterMetric<L extends string> {
  init(labels: Labels<L>): void
  /** Adds to a series. @param amount - 1 if absent, never below 0. */
  add(labels: Labels<L>, amount?: number): void
}

export interface GaugeMetric<L extends string> {
  set(labels: Labels<L>, value: number): void
  /** Adds to a series. @param amount - below 0 to go down. */
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

/** Set of metrics that is independent of other sets. Each name can be created once. */
export interface Metrics {
  counter<L extends string = never>(o: MetricOptions<L>): CounterMetric<L>
  gauge<L extends string = never>(o: MetricOptions<L>): GaugeMetric<L>
  /** Creates a histogram. @param o.buckets - upper bounds, ascending. */
  histogram<L extends string = never>(
    o: MetricOptions<L> & { readonly buckets: readonly number[] },
  ): HistogramMetric<L>
  /** Creates a counter that is read at each scrape. Its series are exactly those that `read` returns. */
  readCounter<L extends string = never>(o: MetricOptions<L> & ReadOption<L>): void
  readGauge<L extends string = never>(o: MetricOptions<L> & ReadOption<L>): void
  /** Renders the metrics as Prometheus text, in the format that `contentType` names. */
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
