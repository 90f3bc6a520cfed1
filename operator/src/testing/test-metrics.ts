import { createMetrics, type Metrics } from '@tutti/chassis'
import { createRuntimeMetrics, type RuntimeMetrics } from '../runtime/metrics.ts'

/** Metrics of a runtime, with a look at one series of what a scrape would give. */
export interface TestMetrics {
  readonly metrics: Metrics
  readonly runtime: RuntimeMetrics
  /** @param series - name and labels as rendered, `a_total{b="c"}` say. @returns undefined if it is not there. */
  readonly read: (series: string) => Promise<number | undefined>
}

export function testMetrics(): TestMetrics {
  const metrics = createMetrics()
  return {
    metrics,
    runtime: createRuntimeMetrics(metrics),
    read: async (series) => {
      const lines = (await metrics.render()).split('\n')
      const line = lines.find((text) => text.startsWith(`${series} `))
      return line === undefined ? undefined : Number(line.slice(series.length + 1))
    },
  }
}
