import { FALLBACK_REASONS } from './direct/direct-links.ts'
import type { TransportCounts } from './endpoints.ts'

/** As MetricFamily of `@tutti/server`. */
interface Family {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge'
  readonly series: readonly {
    readonly labels: readonly (readonly [name: string, value: string])[]
    readonly value: number
  }[]
}

/** The direct connections of a member, for a scrape; nothing without a direct transport. */
export function transportFamilies({ direct }: TransportCounts): readonly Family[] {
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
