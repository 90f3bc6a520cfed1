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

/** The statistics and metrics of a server. */
export class CountReader {
  readonly #target: Target
  readonly #grpc: GrpcService
  /** Text of the metrics; undefined if the server was asked something after it. It makes few such texts in a second. */
  #metrics: string | undefined

  constructor(target: Target, grpc: GrpcService) {
    this.#target = target
    this.#grpc = grpc
  }

  /** Notes that the server is about to be asked something that it counts. */
  expectChange(): void {
    this.#metrics = undefined
  }

  /** Reads what some models count, once it no longer changes: a server counts a request after it has answered it. */
  async read(models: readonly string[]): Promise<Counts> {
    const counts = await this.#settledStatistics(models)
    this.#metrics ??= (await restCall(this.#target.metricsPort, 'GET', '/metrics')).body.toString()
    return new Map([...counts, ...readSeries(models, this.#metrics)])
  }

  async #settledStatistics(models: readonly string[]): Promise<Counts> {
    const end = performance.now() + PATIENCE_MS
    let last = await this.#statistics(models)
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
      const next = await this.#statistics(models)
      const isSame =
        next.size === last.size && [...next].every(([key, value]) => last.get(key) === value)
      if (isSame || performance.now() > end) return next
      last = next
    }
  }

  async #statistics(models: readonly string[]): Promise<Counts> {
    const counts = new Map<string, number>()
    for (const name of models) {
      const answer = await this.#grpc.call({ rpc: 'ModelStatistics', requests: [{ name }] })
      addNumbers(counts, name, Object(answer['message']).model_stats ?? [])
    }
    return counts
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

function readSeries(models: readonly string[], text: string): Counts {
  const counts = new Map<string, number>()
  for (const line of text.split('\n')) {
    const [, name = '', labels = '', value] = /^(\w+)\{([^}]*)\} (\S+)$/.exec(line) ?? []
    const [, model = ''] = /model="([^"]*)"/.exec(labels) ?? []
    // Those of tutti_* have nothing to be compared with.
    if (!models.includes(model) || !name.startsWith('nv_')) continue
    const series = `${name}{${labels.split(',').toSorted().join(',')}}`
    counts.set(series, COUNTED.has(name) ? Number(value) : 0)
  }
  return counts
}
