import { splitName } from '@tutti/model-config'
import type { MetricFamily } from '@tutti/telemetry'
import type { HostedVersion } from './load/hosted-model.ts'

/** Makes the metric family of the automatic queue delays, for the versions that have one. Labels are Triton's. */
export function delayFamily(
  versions: readonly (readonly [
    model: string,
    hosted: Pick<HostedVersion, 'version' | 'serving'>,
  ])[],
): MetricFamily {
  const series = versions.flatMap(([model, { version, serving }]) => {
    const delayMs = serving?.scheduler.context.autoDelay?.delayMs
    if (delayMs === undefined) return []
    const { namespace, name } = splitName(model) ?? { name: model }
    const labels = [
      ['model', name],
      ...(namespace === undefined ? [] : [['namespace', namespace] as const]),
      ['version', String(version)],
    ] as const
    return [{ labels, value: delayMs / 1000 }]
  })
  return {
    name: 'tutti_step_queue_delay_seconds',
    help: 'How long a request waits now for a second one to execute with (maxQueueDelay: auto)',
    type: 'gauge',
    series,
  }
}
