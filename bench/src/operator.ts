import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Client,
  CONTROLLER_REVISION,
  DEPLOYMENT,
  HORIZONTAL_POD_AUTOSCALER,
  NETWORK_POLICY,
  POD,
  POD_DISRUPTION_BUDGET,
  type Resource,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
} from '@tutti/kube'
import type { ApiServer } from '@tutti/kube/testing'
import { median, printTable, quantile } from './figures.ts'
import { MODEL, openOperatorCluster, PER_NAMESPACE, type Place } from './operator-cluster.ts'
import { type OperatorProcess, startOperator } from './operator-process.ts'
import { countWrites, type Writes } from './operator-server.ts'

const MODELS = Number(process.env['TUTTI_BENCH_MODELS'] ?? 10_000)
const REST_MS = 60_000
const CHANGES = 20

/** Kinds of the objects that the operator holds of every Model. */
const CACHED: readonly Resource[] = [
  MODEL,
  POD,
  SECRET,
  DEPLOYMENT,
  SERVICE,
  SERVICE_ACCOUNT,
  POD_DISRUPTION_BUDGET,
  HORIZONTAL_POD_AUTOSCALER,
  NETWORK_POLICY,
  CONTROLLER_REVISION,
]

/** Many Models, one operator, and a real API server without Kubernetes' own controllers: there are no pods. */
export async function benchOperator(nodeFlags: readonly string[]): Promise<void> {
  const opened = new AsyncDisposableStack()
  try {
    const { server, client, models, accountFolder } = await openOperatorCluster(opened, MODELS)
    console.log(`\noperator: ${models.length} Models, ${PER_NAMESPACE} in a namespace`)
    const o = { nodeFlags, models: models.length, accountFolder }
    const start = () => startOperator(server, o)
    const made = await measure(server, start)
    const atRest = await rest(server, made.operator)
    const changes = await changeSome(server, models)
    await made.operator.stop()
    const listMs = await listAll(client)
    const again = await measure(server, start)
    await again.operator.stop()
    printRuns({ 'all to be made': made, 'all there': again })
    console.log(
      `reading the same objects by one client, page by page: ${seconds(listMs)} s; sync over that: ${(again.syncMs / listMs).toFixed(2)}, no-op pass over that: ${(again.passMs / listMs).toFixed(2)}`,
    )
    console.log(`at rest for ${REST_MS / 1000} s: ${atRest}`)
    console.log(
      `a change of one Model until its Deployment has it, ${CHANGES} of them: p50 ${median(changes).toFixed(0)} ms, p90 ${quantile(changes, 0.9).toFixed(0)} ms`,
    )
  } finally {
    await opened.disposeAsync()
  }
}

/** One life of an operator, from its start until there is nothing left to do. Times from the start on. */
interface Run {
  readonly operator: OperatorProcess
  readonly syncMs: number
  readonly passMs: number
  readonly writes: Writes
  readonly cpuMs: number
  readonly syncedBytes: number
  readonly peakBytes: number
  readonly endBytes: number
}

async function measure(server: ApiServer, start: () => Promise<OperatorProcess>): Promise<Run> {
  const before = await countWrites(server)
  const operator = await start()
  const { syncMs, syncedBytes } = operator
  const passMs = await operator.passed()
  const writes = (await countWrites(server)).since(before)
  const { cpuMs, peakBytes, endBytes } = operator.figures()
  return { operator, syncMs, passMs, writes, cpuMs, syncedBytes, peakBytes, endBytes }
}

async function rest(server: ApiServer, operator: OperatorProcess): Promise<string> {
  const [before, { cpuMs }] = [await countWrites(server), operator.figures()]
  await sleep(REST_MS)
  const writes = (await countWrites(server)).since(before)
  const usedMs = operator.figures().cpuMs - cpuMs
  return `writes ${writes.text()}, ${usedMs.toFixed(0)} ms of processor time`
}

/** One after the other, far apart in the list. @returns milliseconds of each. */
async function changeSome(
  { plain }: ApiServer,
  models: readonly Place[],
): Promise<readonly number[]> {
  const times: number[] = []
  for (let i = 0; i < CHANGES; i += 1) {
    const place = models[Math.floor((i * models.length) / CHANGES)]
    if (place === undefined) break
    const { namespace, name } = place
    const started = performance.now()
    await plain.patch(`/apis/tutti.dev/v1alpha1/namespaces/${namespace}/models/${name}`, {
      spec: { resources: { requests: { memory: '2Gi' } } },
    })
    await plain.until(
      `/apis/apps/v1/namespaces/${namespace}/deployments/${name}-step`,
      (deployment) => deployment?.['metadata'].generation === 2,
    )
    times.push(performance.now() - started)
  }
  return times
}

async function listAll(client: Client): Promise<number> {
  const started = performance.now()
  await Promise.all(CACHED.map((resource) => client.list(resource)))
  return performance.now() - started
}

function printRuns(runs: Readonly<Record<string, Run>>): void {
  printTable([
    ['', 'sync s', 'pass s', 'cpu s', 'RSS MB synced', 'peak', 'after'],
    ...Object.entries(runs).map(([name, run]) => [
      name,
      seconds(run.syncMs),
      seconds(run.passMs),
      seconds(run.cpuMs),
      ...[run.syncedBytes, run.peakBytes, run.endBytes].map((bytes) => (bytes / 1e6).toFixed(0)),
    ]),
  ])
  for (const [name, { writes }] of Object.entries(runs)) {
    console.log(`${name}: writes ${writes.text()}`)
  }
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(1)
}
