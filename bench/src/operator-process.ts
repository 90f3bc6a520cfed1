import { setTimeout as sleep } from 'node:timers/promises'
import { startProcess } from '@tutti/chassis/testing'
import type { ApiServer } from '@tutti/kube/testing'
import { cpuUs, peakBytes, residentBytes } from './figures.ts'
import { ISSUER_SECRET, OPERATOR_NAMESPACE } from './operator-server.ts'
import { ROOT } from './servers.ts'

/** A look at the metrics goes through all Models. */
const POLL_MS = 1000
const READY_POLL_MS = 50
/** Without a request and with nothing to do for so long, it has done all. */
const QUIET_MS = 5000

/** The operator as a process of its own. The caller stops it. */
export interface OperatorProcess {
  readonly pid: number
  /** From the start until its caches were complete, and what was resident then. */
  readonly syncMs: number
  readonly syncedBytes: number
  /** Resolves when it has looked at every Model and does nothing more. @returns milliseconds from the start to its last act. */
  passed(): Promise<number>
  figures(): { readonly cpuMs: number; readonly peakBytes: number; readonly endBytes: number }
  stop(): Promise<void>
}

/**
 * @param o.models - that it has to look at.
 * @param o.accountFolder - of its service account.
 */
export async function startOperator(
  server: ApiServer,
  o: {
    readonly nodeFlags: readonly string[]
    readonly models: number
    readonly accountFolder: string
  },
): Promise<OperatorProcess> {
  const started = performance.now()
  const child = await startProcess(
    process.execPath,
    [
      ...o.nodeFlags,
      'operator/dist/main.js',
      '--health-port=0',
      '--metrics-port=0',
      '--nats=nats://nats.example:4222',
      `--nats-issuer-secret=${ISSUER_SECRET}`,
    ],
    {
      cwd: ROOT,
      env: {
        ...process.env,
        POD_NAMESPACE: OPERATOR_NAMESPACE,
        KUBERNETES_SERVICE_HOST: server.url.hostname,
        KUBERNETES_SERVICE_PORT: server.url.port,
        TUTTI_SERVICE_ACCOUNT_DIR: o.accountFolder,
      },
    },
  )
  const { pid } = child
  const ports: { probes: number; metrics: number } = JSON.parse(
    await child.waitForLine((line) => line.includes('"message":"probes and metrics are answered"')),
  )
  while (!(await isReady(ports.probes))) await sleep(READY_POLL_MS)
  const syncMs = performance.now() - started
  return {
    pid,
    syncMs,
    syncedBytes: residentBytes(pid),
    passed: async () => (await untilQuiet(ports.metrics, o.models)) - started,
    figures: () => ({
      cpuMs: cpuUs(pid) / 1000,
      peakBytes: peakBytes(pid),
      endBytes: residentBytes(pid),
    }),
    stop: async () => {
      await child.stop('SIGTERM', 60_000)
    },
  }
}

async function isReady(port: number): Promise<boolean> {
  return (await fetch(`http://127.0.0.1:${port}/readyz`)).ok
}

/** @returns when something was done last. */
async function untilQuiet(port: number, models: number): Promise<number> {
  let last = ''
  let lastAt = performance.now()
  for (;;) {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    const sum = (name: string): number => sumOf(text, name)
    const looks = sum('controller_runtime_reconcile_total{controller="model"')
    const open = sum('workqueue_depth') + sum('controller_runtime_active_workers')
    const seen = `${looks} ${sum('apply_total')} ${sum('status_writes_total')}`
    const now = performance.now()
    if (seen !== last || open > 0 || looks < models) {
      last = seen
      lastAt = now
    } else if (now - lastAt > QUIET_MS) return lastAt
    await sleep(POLL_MS)
  }
}

/** @param start - with which its series begin. */
function sumOf(text: string, start: string): number {
  return text
    .split('\n')
    .filter((line) => line.startsWith(start))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}
