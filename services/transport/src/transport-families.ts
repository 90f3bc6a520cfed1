import { FALLBACK_REASONS } from './direct/direct-links.ts'
import type { TransportCounts } from './endpoints.ts'

/** Family of metrics, of the shape of MetricFamily of `@tutti/telemetry`. */
interface Family {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge'
  readonly series: readonly {
    readonly labels: readonly (readonly [name: string, value: string])[]
    readonly value: number
  }[]
}

/** Makes the metric families for how a member reaches others; those of direct connections only if it has a direct transport. */
export function transportFamilies(counts: TransportCounts): readonly Family[] {
  return [
    ...brokerFamilies(counts),
    {
      name: 'tutti_members',
      help: 'Routers and steps of the repository that this process hears, by role',
      type: 'gauge',
      series: [...counts.members].map(([role, value]) => ({ labels: [['role', role]], value })),
    },
    {
      name: 'tutti_foreign_members',
      help: 'Members that share no version of the protocol with this process',
      type: 'gauge',
      series: [{ labels: [], value: counts.foreign }],
    },
    ...directFamilies(counts),
  ]
}

function brokerFamilies({ broker }: TransportCounts): readonly Family[] {
  const { isUp, connects, sentBytes } = broker
  return [
    {
      name: 'tutti_nats_connected',
      help: '1 while both connections to NATS are there',
      type: 'gauge',
      series: [{ labels: [], value: isUp ? 1 : 0 }],
    },
    {
      name: 'tutti_nats_connects_total',
      help: 'How often both connections to NATS came to be there',
      type: 'counter',
      series: [{ labels: [], value: connects }],
    },
    {
      name: 'tutti_nats_sent_bytes_total',
      help: 'Bytes of the messages that were published',
      type: 'counter',
      series: Object.entries(sentBytes).map(([connection, value]) => ({
        labels: [['connection', connection]],
        value,
      })),
    },
  ]
}

function directFamilies({ direct }: TransportCounts): readonly Family[] {
  if (direct === undefined) return []
  const { kind, open, opening, fallbacks } = direct
  const labelled = (name: string, label: string, value: number) => ({
    labels: [['transport', kind] as const, [name, label] as const],
    value,
  })
  return [
    {
      name: 'tutti_direct_connections',
      help: 'Connections between routers and steps without NATS',
      type: 'gauge',
      series: [labelled('state', 'open', open), labelled('state', 'opening', opening)],
    },
    {
      name: 'tutti_direct_fallbacks_total',
      help: 'Direct connections that could not be made or ended, so that NATS carries everything',
      type: 'counter',
      series: FALLBACK_REASONS.map((reason) =>
        labelled('reason', reason, fallbacks.get(reason) ?? 0),
      ),
    },
  ]
}
