// needs: nats, apiserver, netns
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import {
  findNatsServer,
  type StartedProcess,
  startProcess,
  until,
  withoutNatsServer,
} from '@tutti/chassis/testing'
import { type ApiServer, withoutKube } from '@tutti/kube/testing'
import { InferenceClient } from '@tutti/protocol/client'
import t, { type Test } from 'tap'
import { operatorOf, startChartCluster, startChartPod } from '../chart/chart-pods.ts'
import { find, operatorArgsOf, type Rendered, render } from '../chart/helm.ts'
import { residentBytes } from '../control-churn.ts'
import { command, inOwnNamespaces, withoutNamespaces } from '../faults/own-namespaces.ts'
import type { Pod } from '../network-policies/connection.ts'
import { toNetworkPolicy } from '../network-policies/network-policy.ts'
import { bystander, componentOf, podsOf } from '../network-policies/pods-of-manifests.ts'
import { serveNamespaces, TENANTS } from '../network-policies/served-namespaces.ts'
import { ask, describe } from '../processes/asking.ts'
import { chainQuestion, identityQuestion } from '../processes/questions.ts'
import { isOk } from '../processes/seen.ts'
import { ROOT } from '../serving.ts'
import { BASIC, tempFolder } from '../temp-repository.ts'
import { inside, openTo, startPodNetwork } from './pod-network.ts'

t.setTimeout(0)

/** Minutes of the attack; the quiet before it is as long, up to two minutes. */
const MINUTES = Number(process.env['TUTTI_SOAK_MINUTES'] ?? 10)
const QUIET_MINUTES = Math.min(2, MINUTES)
/** Most that the attack may make of the 99th percentile. */
const P99_RATIO = 2
const CLIENTS = 4
const THINK_MS = 20
const [VICTIM, HOSTILE] = TENANTS
const MODELS = ['add_one_batch', 'big_identity']

const skip =
  [withoutNamespaces(), withoutNatsServer(), withoutKube('helm')].find((one) => one !== false) ??
  false

await t.test('a hostile tenant', { skip }, async (outer) => {
  await inOwnNamespaces(outer, import.meta.url, async () => {
    await outer.test('does another one no harm', async (test) => {
      const scene = await startScene(test)
      const quiet = await askFor(scene.routerOf(VICTIM), QUIET_MINUTES)
      test.same(quiet.errors, [], 'no error before')
      const attacks = await scene.attack()
      const attacked = await askFor(scene.routerOf(VICTIM), MINUTES)
      const said = attacks.lines.at(-1) ?? '{}'
      const natsBytes = await residentBytes({ process: scene.nats })
      await writeReport({
        minutes: MINUTES,
        quiet: summaryOf(quiet),
        attacked: summaryOf(attacked),
        attacks: JSON.parse(said),
        natsMiB: natsBytes >> 20,
      })
      test.same(reached(said), scene.open, 'exactly the ports that the policies open were reached')
      for (const what of ['60 MiB published', 'slow subscribers wait']) {
        test.ok(Number(JSON.parse(said)[what] ?? 0) > 0, `the attack was one: ${what}`)
      }
      test.same(attacked.errors, [], 'no error while the other one attacks')
      const ratio = p99(attacked) / p99(quiet)
      test.ok(ratio <= P99_RATIO, `p99 is ${ratio.toFixed(2)} times that of before`)
      test.ok(natsBytes < scene.natsBytes, `NATS has ${natsBytes >> 20} MiB`)
    })
  })
})

interface Answers {
  /** Milliseconds of every request. */
  readonly latencies: readonly number[]
  /** Outcomes that were no right answer, each kind once with its count. */
  readonly errors: readonly string[]
}

async function askFor(router: Pod, minutes: number): Promise<Answers> {
  const endsAt = performance.now() + minutes * 60_000
  const latencies: number[] = []
  const errors = new Map<string, number>()
  const run = async (index: number): Promise<void> => {
    const client = new InferenceClient({ address: `${router.ip}:8001` })
    for (let seed = index; performance.now() < endsAt; seed += CLIENTS) {
      const question = seed % 10 === 0 ? identityQuestion(300_000, seed) : chainQuestion(seed)
      const from = performance.now()
      const outcome = await ask(client, question, { timeoutMs: 20_000 })
      latencies.push(performance.now() - from)
      const what = describe(outcome)
      if (outcome.kind !== 'right') errors.set(what, (errors.get(what) ?? 0) + 1)
      await delay(THINK_MS)
    }
    client.close()
  }
  await Promise.all(Array.from({ length: CLIENTS }, (_, index) => run(index)))
  return { latencies, errors: [...errors].map(([what, count]) => `${count} x ${what}`) }
}

function summaryOf(answers: Answers) {
  return { requests: answers.latencies.length, errors: answers.errors, p99Ms: p99(answers) }
}

/** Writes `out/soak/tenants.json`, in the place of the last one. */
async function writeReport(report: object): Promise<void> {
  await mkdir(`${ROOT}out/soak`, { recursive: true })
  await writeFile(`${ROOT}out/soak/tenants.json`, `${JSON.stringify(report, undefined, 2)}\n`)
}

function p99({ latencies }: Answers): number {
  return latencies.toSorted((a, b) => a - b)[Math.floor(latencies.length * 0.99)] ?? 0
}

/** Addresses that an attack says it has reached, sorted. */
function reached(said: string): readonly string[] {
  const names = Object.keys(JSON.parse(said)).map((what) => /^reached (\S+)$/.exec(what)?.[1])
  return names.filter((name) => name !== undefined).toSorted()
}

/** Two tenants with a router and a step each, one NATS, and a pod of the hostile one. */
async function startScene(t: Test) {
  // The servers of the tests are on it.
  await command('ip', 'link', 'set', 'lo', 'up')
  const chart = await render()
  const server = await startChartCluster(t, chart)
  for (const name of TENANTS)
    await server.plain.create('/api/v1/namespaces', { metadata: { name } })
  const objects = [...chart, ...(await serveNamespaces(t, server, chart))]
  const intruder = bystander(`${HOSTILE}/intruder`)
  const pods = [...oneOfEach(podsOf(objects)).filter(isOfScene), intruder]
  const podOf = (namespace: string, component: string): Pod => {
    const found = pods.find((pod) => pod.namespace === namespace && componentOf(pod) === component)
    if (found === undefined) throw new Error(`no ${component} in ${namespace}`)
    return found
  }
  const natsPod = podOf('tutti-system', 'nats')
  const network = {
    namespaces: await namespacesOf(server),
    policies: objects.filter(({ kind }) => kind === 'NetworkPolicy').map(toNetworkPolicy),
  }
  const natsUrls = natsArguments(objects, VICTIM).flatMap((arg, i, args) =>
    args[i - 1] === '--nats' ? [arg] : [],
  )
  const names = natsUrls.map((url) => [new URL(url).hostname, natsPod] as const)
  await startPodNetwork(pods, network, Object.fromEntries(names))
  const nats = await startNats(t, server, chart, natsPod)
  // It tells the server the accounts.
  const operator = await startChartPod(t, server, operatorOf(chart))
  await operator.waitForLine((line) => line.includes('nats accounts told'))
  const folders = new Map<string, string>()
  for (const tenant of TENANTS) {
    folders.set(tenant, await credentialOf(t, server, tenant))
    await startTenant(t, podOf, tenant, objects, folders.get(tenant) ?? '')
  }
  const targets = pods.filter(({ namespace }) => namespace !== HOSTILE)
  const addresses = targets.flatMap(({ ip, ports }) => ports.map(({ port }) => `${ip}:${port}`))
  const open = targets.flatMap((to) =>
    openTo(network, intruder, to).map((port) => `${to.ip}:${port}`),
  )
  // NATS is for routers and steps, so the credential is used from one of those pods.
  const attacker = podOf(HOSTILE, 'step')
  const fromStep = targets.flatMap((to) =>
    openTo(network, attacker, to).map((port) => `${to.ip}:${port}`),
  )
  return {
    nats,
    natsBytes: mostNatsBytes(chart),
    open: [...new Set([...fromStep, ...open])].toSorted(),
    routerOf: (tenant: string) => podOf(tenant, 'router'),
    attack: (): Promise<StartedProcess> => {
      const folder = folders.get(HOSTILE) ?? ''
      const args = [
        addresses.join(','),
        `${podOf(HOSTILE, 'router').ip}:8001`,
        natsUrls[0] ?? '',
        join(folder, 'nats.creds'),
      ]
      // A namespace has a quota of CPU, which is no matter of ours; here its pod gets a third of what others get.
      const [enter = '', ...into] = inside(attacker)
      const program = join(import.meta.dirname, 'tenant-attacks.ts')
      return start(t, enter, [...into, 'nice', '-n', '5', process.execPath, program, ...args])
    },
  }
}

/** Not what `helm test` serves. */
function isOfScene(pod: Pod): boolean {
  if (TENANTS.some((tenant) => tenant === pod.namespace)) return true
  return pod.namespace === 'tutti-system' && ['operator', 'nats'].includes(componentOf(pod))
}

/** Several Models have a Deployment each; here one process serves them all. */
function oneOfEach(pods: readonly Pod[]): readonly Pod[] {
  const seen = new Set<string>()
  return pods.filter((pod) => {
    const key = `${pod.namespace}/${componentOf(pod)}`
    return seen.has(key) ? false : seen.add(key)
  })
}

async function namespacesOf({ plain }: ApiServer) {
  const found = await plain.list('/api/v1/namespaces')
  return Object.fromEntries(found.map(({ metadata }) => [metadata.name, metadata.labels]))
}

/** Writes a Secret as its volume. @returns the folder. */
async function mountSecret(t: Test, { plain }: ApiServer, path: string): Promise<string> {
  const secret = await plain.until(path, (object) => object !== undefined)
  const folder = await tempFolder(t)
  for (const [name, text] of Object.entries<string>(secret?.['data'])) {
    await mkdir(join(folder, name, '..'), { recursive: true })
    await writeFile(join(folder, name), Buffer.from(text, 'base64'))
  }
  return folder
}

/** Starts the servers' program with the files that its pods get, at their ports. */
async function startNats(
  t: Test,
  server: ApiServer,
  chart: readonly Rendered[],
  pod: Pod,
): Promise<StartedProcess> {
  const path = '/api/v1/namespaces/tutti-system/secrets/tutti-nats-server'
  const folder = await mountSecret(t, server, path)
  const file = join(folder, 'nats.conf')
  const config: string = find(chart, 'ConfigMap', 'tutti-nats')['data']['nats.conf']
  await writeFile(file, config.replaceAll(/\/etc\/nats|\/data/g, folder))
  const { spec } = find(chart, 'StatefulSet', 'tutti-nats')['spec'].template
  const variables: readonly Rendered[] = spec.containers[0].env
  const env = Object.fromEntries(variables.map(({ name, value = 'tutti-nats-0' }) => [name, value]))
  const [enter = '', ...into] = inside(pod)
  const program = findNatsServer() ?? ''
  const args = [...into, program, '--config', file]
  return await start(t, enter, args, { ready: /Server is ready/, env })
}

/** All that one namespace can make the server hold, by the chart's values, and 128 MiB for the rest; the pod's limit is above. */
function mostNatsBytes(chart: readonly Rendered[]): number {
  const config: string = find(chart, 'ConfigMap', 'tutti-nats')['data']['nats.conf']
  const pendingMi = Number(/max_pending: (\d+)MB/.exec(config)?.[1])
  const connections = /--nats-connections-per-namespace=(\d+)/.exec(operatorArgsOf(chart).join(' '))
  return (Number(connections?.[1]) * pendingMi + 128) * 2 ** 20
}

async function credentialOf(t: Test, server: ApiServer, tenant: string): Promise<string> {
  const secrets = await server.plain.list(`/api/v1/namespaces/${tenant}/secrets`)
  const found = secrets.find(({ data }) =>
    Object.keys(data ?? {}).some((key) => key.endsWith('.creds')),
  )
  if (found === undefined) throw new Error(`${tenant} has no credential`)
  const path = `/api/v1/namespaces/${tenant}/secrets/${found['metadata'].name}`
  const folder = await mountSecret(t, server, path)
  const [name = ''] = (await readdir(folder)).filter((one) => one.endsWith('.creds'))
  if (name !== 'nats.creds') throw new Error(`got ${name}, want nats.creds`)
  return folder
}

/** The arguments about NATS that the operator gives to the pods of a tenant. */
function natsArguments(objects: readonly Rendered[], tenant: string): readonly string[] {
  const router = objects.find(({ kind, metadata }) => {
    return kind === 'Deployment' && metadata.namespace === tenant && /router/.test(metadata.name)
  })
  const { args } = router?.['spec'].template.spec.containers[0] ?? { args: [] }
  return args.filter((arg: string, i: number) => {
    return arg.startsWith('--nats') || String(args[i - 1]).startsWith('--nats')
  })
}

async function startTenant(
  t: Test,
  podOf: (namespace: string, component: string) => Pod,
  tenant: string,
  objects: readonly Rendered[],
  folder: string,
): Promise<void> {
  const nats = natsArguments(objects, tenant).map((arg) => {
    return arg.replace(/^\/var\/run\/tutti\/nats/, folder)
  })
  const common = [...nats, `--repository-name=${tenant}`, `--model-repository=${BASIC}`]
  const tutti = `${ROOT}services/cli/dist/main.js`
  const listens = ['grpc', 'http', 'metrics'].map((name) => `--${name}-address=0.0.0.0`)
  for (const role of ['router', 'step']) {
    const models = role === 'step' ? MODELS.map((model) => `--model=${model}`) : []
    const [enter = '', ...into] = inside(podOf(tenant, role))
    const args = [...into, process.execPath, tutti, role, ...common, ...listens, ...models]
    await start(t, enter, args, { ready: /"server ready"/ })
  }
  const { ip } = podOf(tenant, 'router')
  await until(`${tenant} is served`, () => isOk(`http://${ip}:8000/v2/models/ens_chain/ready`))
}

async function start(
  t: Test,
  program: string,
  args: readonly string[],
  { ready, env }: { readonly ready?: RegExp; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<StartedProcess> {
  const started = await startProcess(program, args, {
    env: { ...process.env, ...env },
    ...(ready && { readyWhen: (line) => ready.test(line), readyTimeoutMs: 120_000 }),
  })
  t.teardown(() => started.stop('SIGKILL'))
  return started
}
