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

/** The metrics of one process part; nothing in it is global. A name can be made once. */
export interface Metrics {
  counter<L extends string = never>(o: MetricOptions<L>): CounterMetric<L>
  gauge<L extends string = never>(o: MetricOptions<L>): GaugeMetric<L>
  /** @param o.buckets - upper bounds, ascending. */
  histogram<L extends string = never>(
    o: MetricOptions<L> & { readonly buckets: readonly number[] },
  ): HistogramMetric<L>
  /** A counter whose series are exactly those that `read` gives at each scrape. */
  readCounter<L extends string = never>(
    o: MetricOptions<L> & { readonly read: () => Iterable<MetricReading<L>> },
  ): void
  readGauge<L extends string = never>(
    o: MetricOptions<L> & { readonly read: () => Iterable<MetricReading<L>> },
  ): void
  /** Prometheus text, of `contentType`. */
  render(): Promise<string>
  readonly contentType: string
}

/** Makes an empty set of metrics. */
export function createMetrics(): Metrics {
  const registry = new Registry()
  return {
    counter: (o) => toCounter(new Counter(toConfig(registry, o))),
    gauge: (o) => toGauge(new Gauge(toConfig(registry, o))),
    histogram: (o) =>
      toHistogram(new Histogram({ ...toConfig(registry, o), buckets: [...o.buckets] })),
    readCounter: (o) => {
      const counter = new Counter({ ...toConfig(registry, o), collect: () => collect() })
      const collect = (): void => {
        counter.reset()
        // A metric without labels keeps its one series at 0; reset() drops those of the others.
        for (const { labels, value } of o.read()) counter.inc(labels, value)
      }
    },
    readGauge: (o) => {
      const gauge = new Gauge({ ...toConfig(registry, o), collect: () => collect() })
      const collect = (): void => {
        gauge.reset()
        for (const { labels, value } of o.read()) gauge.set(labels, value)
      }
    },
    render: () => registry.metrics(),
    contentType: registry.contentType,
  }
}

function toConfig<L extends string>(
  registry: Registry,
  o: MetricOptions<L>,
): { name: string; help: string; labelNames: L[]; registers: Registry[] } {
  return { name: o.name, help: o.help, labelNames: [...(o.labels ?? [])], registers: [registry] }
}

function toCounter<L extends string>(counter: Counter<L>): CounterMetric<L> {
  return {
    init: (labels) => counter.inc(labels, 0),
    add: (labels, amount = 1) => counter.inc(labels, amount),
  }
}

function toGauge<L extends string>(gauge: Gauge<L>): GaugeMetric<L> {
  return {
    set: (labels, value) => gauge.set(labels, value),
    add: (labels, amount) => gauge.inc(labels, amount),
  }
}

function toHistogram<L extends string>(histogram: Histogram<L>): HistogramMetric<L> {
  return {
    init: (labels) => histogram.zero(labels),
    observe: (labels, value) => histogram.observe(labels, value),
  }
}
