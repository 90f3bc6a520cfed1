import type { MetricFamily } from '@tutti/telemetry'

/** A router or a step on the broker, as its process sees it. */
export interface BrokerMember {
  readonly role: 'router' | 'step'
  /** Lists the reasons why this member keeps the process from being ready. Not having joined yet is one. */
  causes(): readonly string[]
  /** Makes the metric families of the member's connections to others; none before it has joined. */
  families(): readonly MetricFamily[]
  /** Drains the member, and resolves when it has nothing in flight. */
  drain(o: { readonly signal: AbortSignal }): Promise<void>
}

/** Makes one list of the members' families. Where there are several members, each series says whose it is. */
export function memberFamilies(members: readonly BrokerMember[]): readonly MetricFamily[] {
  if (members.length === 1) return members.flatMap((member) => member.families())
  const families = members.flatMap((member) =>
    member.families().map((family) => ({
      ...family,
      series: family.series.map((one) => ({
        ...one,
        labels: [['member', member.role] as const, ...one.labels],
      })),
    })),
  )
  return [...Map.groupBy(families, ({ name }) => name).values()].flatMap(([first, ...others]) =>
    first === undefined
      ? []
      : [{ ...first, series: [first, ...others].flatMap(({ series }) => series) }],
  )
}
