import { type FlagValues, type Logger, limitLog, systemClock } from '@tutti/chassis'
import { toTlsFiles } from '@tutti/serving'
import type { MetricFamily, ServerMetrics } from '@tutti/telemetry'
import {
  type HealthReading,
  type JsonAnswers,
  type MetricsServer,
  startMetricsServer,
} from './metrics-server.ts'
import { namePortFlag } from './port-flag.ts'
import type { SERVER_FLAGS } from './server-flags.ts'

export interface ObservedProcess {
  readonly flags: FlagValues<typeof SERVER_FLAGS>
  readonly metrics: ServerMetrics
  /** Health of the process, for `/livez` and `/readyz` on the metrics port. */
  readonly health?: HealthReading
  /** JSON answers to further paths on the metrics port. */
  readonly answers?: JsonAnswers
  readonly log: Logger
}

/**
 * Starts only the metrics server, for executables that take long to start and must answer probes meanwhile. They pass the
 * result to `openServers` later, as `metricsServer`, and close it.
 *
 * @returns undefined if the flags do not allow it.
 * @throws ServeError SETTING_INVALID if the address cannot be listened on.
 */
export async function openMetricsServer(o: ObservedProcess): Promise<MetricsServer | undefined> {
  const { flags, metrics, health, answers, log } = o
  if (!flags['allow-metrics']) return undefined
  metrics.addFamilies(() => [memoryFamily()])
  if (health !== undefined) metrics.addFamilies(() => [readyFamily(health)])
  return await namePortFlag('metrics', () =>
    startMetricsServer({
      address: flags['metrics-address'],
      port: flags['metrics-port'],
      tls: toTlsFiles(flags, 'metrics'),
      metrics,
      log: limitLog(log.child({ server: 'metrics' }), { clock: systemClock }),
      ...(health !== undefined && { health }),
      ...(answers !== undefined && { answers }),
    }),
  )
}

/** Reads the resident memory of the process as a family with Prometheus's usual name. */
function memoryFamily(): MetricFamily {
  return {
    name: 'process_resident_memory_bytes',
    help: 'Resident memory of the process, in bytes',
    type: 'gauge',
    series: [{ labels: [], value: process.memoryUsage.rss() }],
  }
}

function readyFamily({ isReady }: HealthReading): MetricFamily {
  return {
    name: 'tutti_server_ready',
    help: '1 while the process is ready, as /readyz says',
    type: 'gauge',
    series: [{ labels: [], value: isReady ? 1 : 0 }],
  }
}
