import type { CounterMetric, GaugeMetric, Metrics } from '@tutti/chassis'
import type { WorkqueueObserver } from './workqueue.ts'

/** How a reconcile ended; `error` includes the terminal ones. */
export type ReconcileOutcome = 'success' | 'error' | 'requeue_after'

/**
 * The outcome of an apply: `applied` was sent to the server, `skipped` needed no write, `conflict` met an object of another
 * controller, `error` failed.
 */
export type ApplyOutcome = 'applied' | 'skipped' | 'conflict' | 'error'

/** Numbers of a queue at a scrape. */
export interface QueueReading {
  readonly depth: number
  /** Milliseconds since each key that is being processed was taken. */
  processingMs(): readonly number[]
}

/** The metrics of one controller and of its queue. */
export interface ControllerMetrics {
  readonly queue: WorkqueueObserver
  /** Reads the gauges of the workqueue from this queue at each scrape. */
  readQueue(queue: QueueReading): void
  started(): void
  ended(outcome: ReconcileOutcome, tookMs: number): void
  terminal(): void
  timedOut(): void
}

/** The numbers of a cache at a scrape: lists, watches and errors since its start, and objects that it holds. */
export interface CacheReading {
  /** Plural of the resource. */
  readonly resource: string
  readonly lists: number
  readonly watches: number
  readonly errors: number
  readonly objects: number
}

/** The metrics of the runtime, with the names that controller-runtime and client-go give them. */
export interface RuntimeMetrics {
  /** Makes the series of one controller, at 0. */
  controller(name: string, slots: number): ControllerMetrics
  /** Gauge that is 1 while this process leads, else 0. */
  readonly isLeader: GaugeMetric<'name'>
  readonly applies: CounterMetric<'kind' | 'result'>
  readonly statusWrites: CounterMetric<'kind' | 'result'>
  readonly events: CounterMetric<'result'>
  /** 99th percentile of how late the event loop was, in seconds. */
  readonly loopDelay: GaugeMetric<never>
  /** Reads the metrics of these caches at each scrape. */
  readCaches(read: () => Iterable<CacheReading>): void
}

const RECONCILE_SECONDS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1,
  1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
]
const QUEUE_SECONDS = [1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.1, 1, 10, 100, 1000]

/** Registers the runtime's metrics in `metrics`. Call it once for each `metrics`. */
export function createRuntimeMetrics(metrics: Metrics): RuntimeMetrics {
  const reconciles = toReconcileMetrics(metrics)
  const queues = toQueueMetrics(metrics)
  const counter = <L extends string>(name: string, help: string, labels: readonly L[]) =>
    metrics.counter({ name, help, labels })
  const events = counter(
    'events_total',
    'Kubernetes events by whether they were written, folded into an earlier one, or dropped.',
    ['result'],
  )
  for (const result of ['written', 'folded', 'dropped', 'failed']) events.init({ result })
  return {
    controller: (name, slots) => ({ ...reconciles(name, slots), ...queues(name) }),
    isLeader: metrics.gauge({
      name: 'leader_election_master_status',
      help: '1 while this process leads, else 0.',
      labels: ['name'],
    }),
    applies: counter('apply_total', 'Children by kind and by what was done with them.', [
      'kind',
      'result',
    ]),
    statusWrites: counter(
      'status_writes_total',
      'Statuses by kind and by whether they were written or already so.',
      ['kind', 'result'],
    ),
    events,
    loopDelay: metrics.gauge({
      name: 'event_loop_delay_p99_seconds',
      help: '99th percentile of how late the event loop was, over the last interval.',
    }),
    readCaches: (read) => readCaches(metrics, read),
  }
}

function toReconcileMetrics(metrics: Metrics) {
  const labels = ['controller'] as const
  const named = (name: string, help: string) => ({
    name: `controller_runtime_${name}`,
    help,
    labels,
  })
  const total = metrics.counter({
    ...named('reconcile_total', 'Reconciles by how they ended.'),
    labels: ['controller', 'result'],
  })
  const errors = metrics.counter(named('reconcile_errors_total', 'Reconciles that failed.'))
  const terminal = metrics.counter(
    named('terminal_reconcile_errors_total', 'Failures that are not retried.'),
  )
  const timeouts = metrics.counter(
    named('reconcile_timeouts_total', 'Reconciles that took longer than allowed.'),
  )
  const seconds = metrics.histogram({
    ...named('reconcile_time_seconds', 'Time that a reconcile took.'),
    buckets: RECONCILE_SECONDS,
  })
  const most = metrics.gauge(
    named('max_concurrent_reconciles', 'Reconciles that may go on at once.'),
  )
  const active = metrics.gauge(named('active_workers', 'Reconciles that go on.'))
  return (controller: string, slots: number): Omit<ControllerMetrics, 'queue' | 'readQueue'> => {
    for (const result of ['success', 'error', 'requeue_after']) total.init({ controller, result })
    for (const one of [errors, terminal, timeouts, seconds]) one.init({ controller })
    most.set({ controller }, slots)
    active.set({ controller }, 0)
    return {
      started: () => active.add({ controller }, 1),
      ended: (outcome, tookMs) => {
        active.add({ controller }, -1)
        total.add({ controller, result: outcome })
        if (outcome === 'error') errors.add({ controller })
        seconds.observe({ controller }, tookMs / 1000)
      },
      terminal: () => terminal.add({ controller }),
      timedOut: () => timeouts.add({ controller }),
    }
  }
}

function toQueueMetrics(metrics: Metrics) {
  const labels = ['name', 'controller'] as const
  const named = (name: string, help: string) => ({ name: `workqueue_${name}`, help, labels })
  const histogram = (name: string, help: string) =>
    metrics.histogram({ ...named(name, help), buckets: QUEUE_SECONDS })
  const adds = metrics.counter(named('adds_total', 'Keys that were added.'))
  const retries = metrics.counter(named('retries_total', 'Keys that come again after a failure.'))
  const waited = histogram(
    'queue_duration_seconds',
    'Time from the first add of a key until it was taken.',
  )
  const worked = histogram('work_duration_seconds', 'Time that a key was being processed.')
  const queues = new Map<string, QueueReading>()
  const read = (name: string, help: string, value: (queue: QueueReading) => number): void =>
    metrics.readGauge({
      ...named(name, help),
      read: () =>
        [...queues].map(([controller, queue]) => ({
          labels: { name: controller, controller },
          value: value(queue),
        })),
    })
  read('depth', 'Keys that can be taken now.', ({ depth }) => depth)
  read(
    'unfinished_work_seconds',
    'Sum of the times of the keys that are being processed.',
    (queue) => queue.processingMs().reduce((sum, ms) => sum + ms / 1000, 0),
  )
  read('longest_running_processor_seconds', 'The longest of these times.', (queue) =>
    queue.processingMs().reduce((longest, ms) => Math.max(longest, ms / 1000), 0),
  )
  return (controller: string): Pick<ControllerMetrics, 'queue' | 'readQueue'> => {
    const series = { name: controller, controller }
    for (const one of [adds, retries, waited, worked]) one.init(series)
    return {
      queue: {
        added: () => adds.add(series),
        retried: () => retries.add(series),
        taken: (waitedMs) => waited.observe(series, waitedMs / 1000),
        done: (tookMs) => worked.observe(series, tookMs / 1000),
      },
      readQueue: (queue) => void queues.set(controller, queue),
    }
  }
}

function readCaches(metrics: Metrics, readings: () => Iterable<CacheReading>): void {
  const labels = ['resource'] as const
  /** A resource may have more than one cache. */
  const sum = (value: (cache: CacheReading) => number) => () => {
    const sums = new Map<string, number>()
    for (const cache of readings()) {
      sums.set(cache.resource, (sums.get(cache.resource) ?? 0) + value(cache))
    }
    return [...sums].map(([resource, total]) => ({ labels: { resource }, value: total }))
  }
  const count = (name: string, help: string, value: (cache: CacheReading) => number): void =>
    metrics.readCounter({ name, help, labels, read: sum(value) })
  count('reflector_lists_total', 'Complete states read.', (cache) => cache.lists)
  count('reflector_watches_total', 'Watches opened.', (cache) => cache.watches)
  count('reflector_watch_errors_total', 'Lists and watches that failed.', (cache) => cache.errors)
  metrics.readGauge({
    name: 'cache_objects',
    help: 'Objects held.',
    labels,
    read: sum((cache) => cache.objects),
  })
}
