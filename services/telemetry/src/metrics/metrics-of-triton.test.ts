import { readFileSync } from 'node:fs'
import t from 'tap'
import { StatisticsRecorder } from '../statistics/statistics.ts'
import { ServerMetrics } from './metrics.ts'

/** Families that a running Triton 2.51 printed with `summary_latencies=true` for a model with the tag `team`; and label names of each series. */
const RECORDED = new URL('../testing/triton-2.51-metrics.txt', import.meta.url)

/** A series as the record has it: its name, and those of its labels. */
function toRecord(line: string): string {
  if (line.startsWith('#')) return line
  const [series = ''] = line.split(/ [^ ]+$/)
  const [name = '', labels = ''] = series.split('{')
  const names = [...labels.matchAll(/(\w+)="/g)].map(([, label = '']) => label).toSorted()
  return [name, ...(names.length > 0 ? [names.join(',')] : [])].join(' ')
}

await t.test('families, words, types and labels are those of a running Triton', async (t) => {
  const metrics = new ServerMetrics({
    latencies: { hasCounters: true, hasHistograms: false, quantiles: [0.5, 0.9] },
  })
  const recorder = new StatisticsRecorder({ name: 'm', version: '1' })
  metrics.addModel(recorder, { name: 'm', version: '1', tags: { team: 'a' } })
  const ours = new Set((await metrics.render()).split('\n').map(toRecord))
  const recorded = readFileSync(RECORDED, 'utf8').trim().split('\n')
  t.equal(recorded.length, 70)
  t.same(
    recorded.filter((line) => !ours.has(line)),
    [],
  )
})
