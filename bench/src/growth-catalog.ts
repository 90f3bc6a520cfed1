import type { ModelConfig } from '@tutti/model-config'
import { testRouter, toConfig } from '@tutti/router/testing'
import { median, printTable } from './figures.ts'

const MODELS = 1000
const CHANGES = 20
const RESOLVES = 200_000
const IO = `max_batch_size: 8 input { name: "X" data_type: TYPE_FP32 dims: 4 }
  output { name: "Y" data_type: TYPE_FP32 dims: 4 }`

/**
 * Measures what a router needs for ensembles of three steps each: to begin, when a step is described anew, and to find what a request
 * names.
 */
export async function growCatalog(): Promise<void> {
  const rows: string[][] = []
  for (const ensembles of [1, 1000, 10_000]) {
    rows.push(measure(ensembles))
    // Streams and timers of the last router end.
    await new Promise((resolve) => setImmediate(resolve))
  }
  const heads = ['ensembles', 'start ms', 'ms for a step that changes', 'ns to resolve']
  printTable([[...heads, 'heap MB'], ...rows])
}

function measure(ensembles: number): string[] {
  const heapBefore = process.memoryUsage().heapUsed
  const configs = Array.from({ length: MODELS }, (_, i) =>
    toConfig(`m${i}`, `backend: "python" ${IO}`),
  )
  const started = performance.now()
  const texts = Array.from({ length: ensembles }, (_, i) => [`e${i}`, ensembleText(i)] as const)
  const { router } = testRouter({ ensembles: Object.fromEntries(texts) })
  const models = configs.map(describe)
  const questions = { statistics: async () => [] }
  router.view.describe({ replica: 'all', models }, questions)
  const startMs = performance.now() - started
  const changes = Array.from({ length: CHANGES }, (_, i) => {
    const before = performance.now()
    const replica = `step-${i}`
    router.view.describe({ replica, models: models.slice(i, i + 1) }, questions)
    return performance.now() - before
  })
  const name = (i: number): string => `e${i % ensembles}`
  const resolve = (): void => {
    for (let i = 0; i < RESOLVES; i++) router.resolve(name(i), '')
  }
  resolve()
  const before = performance.now()
  resolve()
  const resolveNs = ((performance.now() - before) * 1e6) / RESOLVES
  const heapMb = (process.memoryUsage().heapUsed - heapBefore) / 1e6
  return [
    String(ensembles),
    startMs.toFixed(0),
    median(changes).toFixed(2),
    resolveNs.toFixed(0),
    heapMb.toFixed(0),
  ]
}

function describe(config: ModelConfig) {
  const version = { version: 1, revision: 'r', state: 'READY' as const, reason: '' }
  return { name: config.name, config, labels: {}, versions: [version], reason: '' }
}

function ensembleText(i: number): string {
  const steps = [step(i, 'X', 'a'), step(i * 7 + 1, 'a', 'b'), step(i * 13 + 2, 'b', 'Y')]
  return `platform: "ensemble" ${IO} ensemble_scheduling { step: [ ${steps.join(', ')} ] }`
}

function step(model: number, from: string, to: string): string {
  return `{ model_name: "m${model % MODELS}" model_version: -1
    input_map { key: "X" value: "${from}" } output_map { key: "Y" value: "${to}" } }`
}
