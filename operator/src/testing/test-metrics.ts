import { createMetrics } from '@tutti/chassis'
import { createRuntimeMetrics } from '../runtime/metrics.ts'

export type TestMetrics = ReturnType<typeof testMetrics>

/** Makes metrics of a runtime, and a function that reads one series as a scrape would. */
export function testMetrics() {
  const metrics = createMetrics()
  return {
    metrics,
    runtime: createRuntimeMetrics(metrics),
    /**
     * Reads one series.
     *
     * @param series - name and labels as rendered, `a_total{b="c"}` say.
     * @returns undefined if it is absent.
     */
    read: async (series: string): Promise<number | undefined> => {
      const lines = (await metrics.render()).split('\n')
      const line = lines.find((text) => text.startsWith(`${series} `))
      return line === undefined ? undefined : Number(line.slice(series.length + 1))
    },
  }
}
