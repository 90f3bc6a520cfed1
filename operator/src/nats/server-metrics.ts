import type { Metrics } from '@tutti/chassis'
import type { ServerFigures } from './system-link.ts'

type Family = readonly [name: string, help: string, read: (of: ServerFigures) => number]

const GAUGES: readonly Family[] = [
  ['connections', 'Clients of a NATS server.', (of) => of.connections],
  ['subscriptions', 'Subscriptions that a NATS server knows.', (of) => of.subscriptions],
  ['memory_bytes', 'Resident memory of a NATS server.', (of) => of.mem],
  [
    'memory_limit_bytes',
    'GOMEMLIMIT of a NATS server that has one.',
    // Without one Go says the largest integer.
    ({ gomemlimit }) => (gomemlimit < 2 ** 62 ? gomemlimit : Number.NaN),
  ],
]

const COUNTERS: readonly Family[] = [
  [
    'slow_consumers_total',
    'Connections that a NATS server ended because they did not read.',
    (of) => of.slow_consumers,
  ],
  ['received_messages_total', 'Messages that a NATS server received.', (of) => of.in_msgs],
  ['sent_messages_total', 'Messages that a NATS server sent.', (of) => of.out_msgs],
  ['received_bytes_total', 'Bytes of messages that a NATS server received.', (of) => of.in_bytes],
  ['sent_bytes_total', 'Bytes of messages that a NATS server sent.', (of) => of.out_bytes],
]

/**
 * Registers metrics of the chart's NATS servers. Each scrape asks the servers once, for all metrics together. If they do not
 * answer, the scrape succeeds without these metrics.
 */
export function createServerMetrics(
  metrics: Metrics,
  readServers: () => Promise<readonly ServerFigures[]>,
): void {
  let reading: Promise<readonly ServerFigures[]> | undefined
  const readOnce = (): Promise<readonly ServerFigures[]> => {
    reading ??= readServers()
      .catch(() => [])
      .finally(() => (reading = undefined))
    return reading
  }
  const toOptions = ([name, help, read]: Family) => ({
    name: `tutti_nats_server_${name}`,
    help,
    labels: ['server'] as const,
    read: async () =>
      (await readOnce())
        .map((of) => ({ labels: { server: of.server_name }, value: read(of) }))
        .filter(({ value }) => !Number.isNaN(value)),
  })
  for (const family of GAUGES) metrics.readGauge(toOptions(family))
  for (const family of COUNTERS) metrics.readCounter(toOptions(family))
}
