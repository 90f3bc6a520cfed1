import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort, startNatsServer } from '@tutti/chassis/testing'
import type { ApiServer } from '@tutti/kube/testing'
import type { Test } from 'tap'
import {
  createNamespace,
  operatorOf,
  startChartCluster,
  startChartPod,
} from '../chart/chart-pods.ts'
import { render, type Values } from '../chart/helm.ts'
import type { DirectKind } from '../processes/direct-flags.ts'
import { type Member, startHarness } from '../processes/harness.ts'
import { untilReady } from '../processes/seen.ts'
import { parseLine } from '../serving.ts'
import { tempFolder } from '../temp-repository.ts'
import type { ScrapeTarget } from './prometheus.ts'

const MODELS = ['slow', 'add_one_batch', 'versioned', 'big_identity', 'fail_at_run']
export const NAMESPACE = 'team-a'
const MODEL_PATH = `/apis/tutti.dev/v1alpha1/namespaces/${NAMESPACE}/models/adder`
const MESSAGE = 'probes and metrics are answered'

function targetOf(pod: string, { metricsPort }: Member): ScrapeTarget {
  const labels = { namespace: NAMESPACE, pod }
  return { job: 'tutti-system/tutti-served', port: metricsPort, labels }
}

/** A router and two steps around a broker, as processes, and how the PodMonitor of the chart labels them. */
export async function startServed(
  t: Test,
  direct: DirectKind,
  /** Environment of router and steps. */
  env: Readonly<Record<string, string>> = {},
) {
  const harness = await startHarness(t, { direct })
  const proxy = await harness.proxy()
  const [router, first, second] = await Promise.all([
    harness.router({ proxy, env }),
    harness.step({ models: MODELS, env }),
    harness.step({ models: MODELS, env }),
  ])
  await untilReady([router], ['ens_chain', 'ens_slow', 'ens_versioned', 'big_identity'])
  return {
    router,
    steps: [first, second],
    /** Between the router and the broker. */
    proxy,
    targets: [targetOf('router-0', router), targetOf('step-0', first), targetOf('step-1', second)],
  }
}

function leads(line: string): boolean {
  return parseLine(line)['message'] === 'leading'
}

/** A NATS server with what the operator of the chart made for it. */
async function startServers(t: Test, { plain }: ApiServer, port: number): Promise<void> {
  const path = '/api/v1/namespaces/tutti-system/secrets/tutti-nats-server'
  const secret = await plain.until(path, (found) => found?.['data'] !== undefined)
  const folder = await tempFolder(t)
  const files = Object.entries(secret?.['data'] ?? {}).map(([name, text]) => {
    return [name, Buffer.from(String(text), 'base64').toString()] as const
  })
  for (const [name, text] of files) await writeFile(join(folder, name), text)
  const config = [
    'server_name: tutti-nats-0',
    `tls { cert_file: "${folder}/tls.crt", key_file: "${folder}/tls.key" }`,
    `resolver { type: full, dir: "${folder}/accounts", allow_delete: true, hard_delete: true }`,
    "include 'tenancy.conf'",
  ]
  const env = { GOMEMLIMIT: '256MiB' }
  const options = { port, config: config.join('\n'), files: Object.fromEntries(files), env }
  const started = await startNatsServer(options)
  t.teardown(() => started.stop())
}

/** The operator of the chart as a process, at a real API server with one Model, and the NATS server that it keeps. */
export async function startServedOperator(t: Test, values: Values = {}) {
  const objects = await render(values)
  const port = await freePort()
  const server = await startChartCluster(t, objects)
  await createNamespace(server, NAMESPACE)
  let changes = 0
  /** The Model changes, and the operator reconciles it. */
  const change = async (): Promise<void> => {
    changes += 1
    const storageUri = `http://models.invalid/${changes}.tar`
    await server.plain.apply(MODEL_PATH, {
      apiVersion: 'tutti.dev/v1alpha1',
      kind: 'Model',
      metadata: { name: 'adder' },
      spec: { modelFormat: { name: 'onnx' }, storageUri },
    })
  }
  await change()
  const workload = operatorOf(objects)
  const [container] = workload['spec'].template.spec.containers
  container.args = container.args.map((arg: string) =>
    arg.replace(/^--nats=.*/, `--nats=tls://localhost:${port}`),
  )
  const operator = await startChartPod(t, server, workload, { readyWhen: leads })
  await startServers(t, server, port)
  const listening = operator.lines.map(parseLine).find(({ message }) => message === MESSAGE)
  return {
    change,
    /** The variables of the pods of a Deployment of the namespace, as the API server has them. */
    environmentOf: async (deployment: string) => {
      const path = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/${deployment}`
      const found = await server.plain.until(path, (one) => one !== undefined)
      return found?.['spec'].template.spec.containers[0].env
    },
    /** Deletes the Model. */
    remove: () => server.plain.send('DELETE', MODEL_PATH, {}),
    targets: [
      {
        job: 'tutti-operator-metrics',
        port: Number(listening?.['metrics']),
        labels: { namespace: 'tutti-system', pod: 'tutti-operator-0' },
      },
    ] satisfies readonly ScrapeTarget[],
  }
}
