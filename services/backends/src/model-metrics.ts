import { ServeError } from '@tutti/errors'

export type MetricKind = 'counter' | 'gauge' | 'histogram'

/** One series as a scrape prints it. */
export interface ModelMetricSeries {
  readonly labels: readonly (readonly [name: string, value: string])[]
  readonly value: number
  /** Part of a histogram that the series is; absent for other kinds. */
  readonly suffix?: '_bucket' | '_sum' | '_count'
}

/** A family as a scrape prints it. */
export interface ModelMetricFamily {
  readonly name: string
  readonly help: string
  readonly type: MetricKind
  readonly series: readonly ModelMetricSeries[]
}

/** The operation of a model on a metric. */
export type MetricOperation = 'increment' | 'set' | 'observe'

interface Family {
  readonly name: string
  readonly help: string
  readonly type: MetricKind
  /** Metrics of the family, by label set. */
  readonly metrics: Map<string, Metric>
  /** References from sessions and metrics. */
  references: number
}

interface Metric {
  readonly family: Family
  readonly key: string
  readonly labels: readonly (readonly [string, string])[]
  /** Upper bounds, ascending; none but for a histogram. */
  readonly buckets: readonly number[]
  /** Observations up to each bound, not cumulated; the last is above all. */
  readonly counts: number[]
  value: number
  references: number
}

/** Series of one server that models may make. A label set beyond it is refused: each costs memory at every scrape. */
const MOST_METRICS = 10_000
const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const RESERVED = /^(nv|tutti)_/
const LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*$/

/**
 * The metrics that models add to the server's. Families of one name, and metrics of one label set in them, are one, whichever
 * instance makes them; each lasts as long as a session has it.
 */
export class CustomMetrics {
  readonly #families = new Map<string, Family>()

  /** Reads the families as they are now, for a scrape. */
  read(): ModelMetricFamily[] {
    return [...this.#families.values()].map(({ name, help, type, metrics }) => ({
      name,
      help,
      type,
      series: [...metrics.values()].flatMap(toSeries),
    }))
  }

  /** Opens a session for one process; what it makes ends with it, unless another session has it too. */
  open(): CustomMetricsSession {
    return new CustomMetricsSession(this.#families)
  }
}

/** The families and metrics of one process, by the numbers with which the process names them. */
export class CustomMetricsSession {
  readonly #families: Map<string, Family>
  readonly #held = new Map<number, Family | Metric>()
  #nextId = 1

  /** @param families - of all sessions, by name. */
  constructor(families: Map<string, Family>) {
    this.#families = families
  }

  /**
   * Makes a family, or finds the one of that name, which keeps its description. @returns its number.
   *
   * @throws ServeError INVALID_REQUEST for a bad name, or one that is used with another kind. Texts begin with Triton's.
   */
  family(name: string, help: string, type: MetricKind): number {
    if (!NAME.test(name))
      throw refusal(`Invalid metric name: "${name}", want letters, digits, _ and :`)
    if (RESERVED.test(name))
      throw refusal(`metric names with ${RESERVED.source} are the server's own`)
    const known = this.#families.get(name)
    if (known !== undefined && known.type !== type) {
      throw refusal(`Family name already exists with different type: "${name}" is a ${known.type}`)
    }
    const family = known ?? { name, help, type, metrics: new Map(), references: 0 }
    this.#families.set(name, family)
    return this.#hold(family)
  }

  /** Makes a metric, or finds the one with those labels. @throws ServeError INVALID_REQUEST for bad labels or buckets; OVERLOADED beyond the bound. */
  metric(
    familyId: number,
    labels: readonly (readonly [string, string])[],
    buckets: readonly number[],
  ): number {
    const family = this.#held.get(familyId)
    if (family === undefined || 'family' in family)
      throw refusal(`there is no metric family ${familyId}`)
    const bad = labels.find(([name]) => !LABEL.test(name))
    if (bad !== undefined)
      throw refusal(`Invalid label name: "${bad[0]}", want letters, digits and _`)
    if (family.type === 'histogram' && labels.some(([name]) => name === 'le')) {
      throw refusal('label "le" of a histogram is for its buckets')
    }
    if (buckets.some((bound, i) => !(bound > (buckets[i - 1] ?? Number.NEGATIVE_INFINITY)))) {
      throw refusal(`Bucket Boundaries must be strictly sorted: [${buckets.join(', ')}]`)
    }
    const key = JSON.stringify(labels.toSorted(([a], [b]) => (a < b ? -1 : 1)))
    const known = family.metrics.get(key)
    if (known !== undefined) return this.#hold(known)
    this.#requireCapacity()
    const counts = [...buckets, 0].map(() => 0)
    const metric = { family, key, labels, buckets, counts, value: 0, references: 0 }
    family.metrics.set(key, metric)
    family.references += 1
    return this.#hold(metric)
  }

  /** Lets go of a family or a metric. */
  remove(id: number): void {
    const held = this.#held.get(id)
    this.#held.delete(id)
    if (held !== undefined) this.#release(held)
  }

  /** Updates a metric. An operation that its kind does not have changes nothing: the library has refused it already. */
  update(id: number, operation: MetricOperation, value: number): void {
    const metric = this.#metric(id)
    if (metric === undefined) return
    if (operation === 'set') metric.value = value
    else {
      metric.value += value
      if (operation === 'observe') count(metric, value)
    }
  }

  /** Reads the value of a metric. @throws ServeError if there is no such metric. */
  value(id: number): number {
    const metric = this.#metric(id)
    if (metric === undefined) throw refusal(`there is no metric ${id}`)
    return metric.value
  }

  /** Lets go of all metrics of the process, which has ended. */
  close(): void {
    for (const id of this.#held.keys()) this.remove(id)
  }

  #hold(held: Family | Metric): number {
    held.references += 1
    this.#held.set(this.#nextId, held)
    return this.#nextId++
  }

  #release(held: Family | Metric): void {
    held.references -= 1
    if (held.references > 0) return
    if (!('family' in held)) this.#families.delete(held.name)
    else {
      held.family.metrics.delete(held.key)
      this.#release(held.family)
    }
  }

  #metric(id: number): Metric | undefined {
    const held = this.#held.get(id)
    return held !== undefined && 'family' in held ? held : undefined
  }

  #requireCapacity(): void {
    let metrics = 0
    for (const family of this.#families.values()) metrics += family.metrics.size
    if (metrics < MOST_METRICS) return
    const problem = `models have ${metrics} metrics already, want at most ${MOST_METRICS}`
    throw new ServeError('OVERLOADED', problem)
  }
}

function count({ buckets, counts }: Metric, value: number): void {
  const found = buckets.findIndex((bound) => value <= bound)
  const index = found === -1 ? buckets.length : found
  counts[index] = (counts[index] ?? 0) + 1
}

function toSeries({ family, labels, buckets, counts, value }: Metric): ModelMetricSeries[] {
  if (family.type !== 'histogram') return [{ labels, value }]
  let total = 0
  const bars = [...buckets.map(String), '+Inf'].map((le, i): ModelMetricSeries => {
    total += counts[i] ?? 0
    return { labels: [...labels, ['le', le]], value: total, suffix: '_bucket' }
  })
  return [...bars, { labels, value, suffix: '_sum' }, { labels, value: total, suffix: '_count' }]
}

function refusal(problem: string): ServeError {
  return new ServeError('INVALID_REQUEST', problem)
}
