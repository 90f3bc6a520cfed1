import { restCall } from '../rest-call.ts'
import type { Target } from '../serving.ts'
import type { GrpcService } from './grpc-service.ts'

const LOOK_EVERY_MS = 25
const PATIENCE_MS = 2000
/** Metrics in which a server counts requests; times are only there or not. */
const COUNTED = new Set([
  'nv_inference_request_success',
  'nv_inference_request_failure',
  'nv_inference_count',
  'nv_inference_exec_count',
  'nv_inference_pending_request_count',
])

/** Name of a counter -> its value. */
export type Counts = ReadonlyMap<string, number>

/** Statistics and metrics of some models, once they no longer change: a server counts a request after it has answered it. */
export async function readCounts(
  target: Target,
  grpc: GrpcService,
  models: readonly string[],
): Promise<Counts> {
  const end = performance.now() + PATIENCE_MS
  let last = await readOnce(target, grpc, models)
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
    const next = await readOnce(target, grpc, models)
    const isSame =
      next.size === last.size && [...next].every(([key, value]) => last.get(key) === value)
    if (isSame || performance.now() > end) return next
    last = next
  }
}

/** By how much each counter has grown; those that have not are left out, unless they are new or gone. */
export function growth(before: Counts, after: Counts): Readonly<Record<string, number>> {
  const grown = [...after].map(([key, value]) => [key, value - (before.get(key) ?? 0)] as const)
  return Object.fromEntries(
    grown
      .filter(([key, value]) => value !== 0 || !before.has(key))
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  )
}

async function readOnce(
  target: Target,
  grpc: GrpcService,
  models: readonly string[],
): Promise<Counts> {
  const counts = new Map<string, number>()
  for (const name of models) {
    const answer = await grpc.call({ rpc: 'ModelStatistics', requests: [{ name }] })
    addNumbers(counts, name, Object(answer['message']).model_stats ?? [])
  }
  const { body } = await restCall(target.metricsPort, 'GET', '/metrics')
  addSeries(counts, models, body.toString())
  return counts
}

/** The counts of a statistics message by their paths; items of lists have what identifies them in it. */
function addNumbers(counts: Map<string, number>, path: string, value: unknown): void {
  if (typeof value !== 'object' || value === null) {
    if (path.endsWith('count')) counts.set(path, Number(value))
    return
  }
  for (const [key, item] of Object.entries(value)) {
    const { version, batch_size: size } = Object(item)
    const name = Array.isArray(value) ? `[${version ?? size ?? key}]` : `.${key}`
    if (name !== '.last_inference') addNumbers(counts, `${path}${name}`, item)
  }
}

function addSeries(counts: Map<string, number>, models: readonly string[], text: string): void {
  for (const line of text.split('\n')) {
    const [, name = '', labels = '', value] = /^(\w+)\{([^}]*)\} (\S+)$/.exec(line) ?? []
    const [, model = ''] = /model="([^"]*)"/.exec(labels) ?? []
    // Those of tutti_* have nothing to be compared with.
    if (!models.includes(model) || !name.startsWith('nv_')) continue
    const series = `${name}{${labels.split(',').toSorted().join(',')}}`
    counts.set(series, COUNTED.has(name) ? Number(value) : 0)
  }
}
