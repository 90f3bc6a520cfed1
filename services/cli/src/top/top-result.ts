import { renderJsonLine } from '@tutti/chassis'
import { known, readonlyListOf } from '@tutti/command-line/results'
import { z } from 'zod'
import type { ModelRow } from './model-rows.ts'
import type { TopView } from './render-top.ts'

const figure = (description: string) => z.number().nullable().meta({ description })

const ModelFigures = z.object({
  model: z.string(),
  namespace: z.string().nullable(),
  version: z.string(),
  pending: figure('Requests that wait.'),
  requestsPerSecond: figure('Requests that went well.'),
  failuresPerSecond: figure('Requests that failed.'),
  inFlight: figure('Requests in flight on average.'),
  meanMs: figure('Of a request.'),
  queueMs: figure('Mean time in the queue.'),
  computeMs: figure('Mean time of execution.'),
  p50Ms: figure('Median of requests in the last minute, where the server measures it.'),
  p99Ms: figure('99th percentile of requests in the last minute, where the server measures it.'),
  firstResponseP50Ms: figure('Median of the times to first responses in the interval, of streams.'),
  firstResponseP99Ms: figure(
    '99th percentile of the times to first responses in the interval, of streams.',
  ),
})

/** The result that `tutti top` prints as JSON. What is not known is null. */
export const TopResult = z
  .object({
    url: z.string(),
    intervalSecs: z.number().meta({ description: 'Time between the two readings.' }),
    processMemoryBytes: figure('Of the server.'),
    hostMemoryUsedBytes: figure('Of its machine.'),
    hostMemoryTotalBytes: figure('Of its machine.'),
    hostCpuShare: figure('Of its machine, from 0 to 1.'),
    models: readonlyListOf(ModelFigures).meta({ description: 'The busiest one first.' }),
  })
  .meta({ title: 'Result of tutti top' })
type TopResult = z.infer<typeof TopResult>

/** Renders the content as one line of JSON. @param intervalMs - milliseconds between the two readings. */
export function renderTopResult({ url, reading, rows }: TopView, intervalMs: number): string {
  const gauge = (name: string): number | null => known(reading?.gauges.get(name))
  const result: TopResult = {
    url,
    intervalSecs: intervalMs / 1000,
    processMemoryBytes: gauge('process_resident_memory_bytes'),
    hostMemoryUsedBytes: gauge('nv_cpu_memory_used_bytes'),
    hostMemoryTotalBytes: gauge('nv_cpu_memory_total_bytes'),
    hostCpuShare: gauge('nv_cpu_utilization'),
    models: rows.map(toFigures),
  }
  return renderJsonLine(result)
}

function toFigures({
  rates,
  namespace,
  inFlight,
  p50Ms,
  p99Ms,
  firstResponseP50Ms,
  firstResponseP99Ms,
  ...row
}: ModelRow): z.infer<typeof ModelFigures> {
  return {
    ...row,
    pending: known(row.pending),
    namespace: namespace ?? null,
    requestsPerSecond: known(rates?.requestsPerSecond),
    failuresPerSecond: known(rates?.failuresPerSecond),
    inFlight: known(inFlight),
    meanMs: known(rates?.requestMs),
    queueMs: known(rates?.queueMs),
    computeMs: known(rates?.computeMs),
    p50Ms: known(p50Ms),
    p99Ms: known(p99Ms),
    firstResponseP50Ms: known(firstResponseP50Ms),
    firstResponseP99Ms: known(firstResponseP99Ms),
  }
}
