import { until } from '@tutti/chassis/testing'
import type { ApiServer, PlainObject } from '@tutti/kube/testing'
import type { Test } from 'tap'
import { operatorOf, startChartCluster, startChartPod } from '../chart/chart-pods.ts'
import { render } from '../chart/helm.ts'
import { manifestsOf } from '../network-policies/served-namespaces.ts'
import { heldNow, INSPECTED } from './held.ts'
import { addUp } from './soak-report.ts'
import type { Way } from './way.ts'

const TUTTI_API = '/apis/tutti.dev/v1alpha1'

/**
 * The operator of the chart on a real API server with Kubernetes' own controllers: each round makes a namespace with Models and an
 * Ensemble, changes them, and deletes them and the namespace. Every name is new each time.
 */
export async function startOperatorWay(t: Test): Promise<Way> {
  const chart = await render()
  const server = await startChartCluster(t, chart, { hasControllers: true })
  const operator = await startChartPod(t, server, operatorOf(chart), {
    readyWhen: (line) => line.includes('"leading"'),
    env: INSPECTED,
  })
  let namespaces = 0
  return {
    round: async () => {
      namespaces += 1
      const from = operator.lines.length
      const made = await liveThrough(server, `soak-${namespaces}`)
      const forbidden = operator.lines.slice(from).filter((line) => /forbidden/i.test(line))
      const problems = forbidden.filter((line) => !isOfTheEnd(line))
      // Nobody reads them later, and there are thousands in a day.
      operator.lines.length = from
      return { done: { 'objects made and deleted': made, namespaces: 1 }, problems }
    },
    held: async () =>
      addUp([
        await heldNow('operator', operator),
        { 'API server: objects': await countObjects(server) },
      ]),
  }
}

/** Tells whether a line comes of the end of a namespace: while it is being deleted, what is made in it is refused. */
function isOfTheEnd(line: string): boolean {
  return /because it is being terminated/.test(line)
}

/** @returns how many objects were made by hand. */
async function liveThrough({ plain }: ApiServer, namespace: string): Promise<number> {
  const space = `/api/v1/namespaces/${namespace}`
  await plain.create('/api/v1/namespaces', { metadata: { name: namespace } })
  const manifests = manifestsOf(namespace)
  for (const manifest of manifests) await plain.apply(pathOf(manifest), manifest)
  const deployments = `/apis/apps/v1/namespaces/${namespace}/deployments`
  const pods = (wanted: number): Promise<unknown> =>
    until(`${namespace} has ${wanted} Deployments with pods`, async () => {
      const owners = await plain.list(`/apis/apps/v1/namespaces/${namespace}/replicasets`)
      const all = await plain.list(deployments)
      return all.length === wanted && owners.length >= wanted
    })
  const models = manifests.filter(({ kind }) => kind === 'Model')
  await pods(models.length + 1)
  const before = generations(await plain.list(deployments))
  for (const { kind, metadata } of models) {
    const spec = { storageUri: 'https://storage.example/other.tar' }
    await plain.patch(pathOf({ kind, metadata }), { spec })
  }
  await plain.patch(`${TUTTI_API}/namespaces/${namespace}/routers/default`, {
    spec: { scaling: { replicas: 3 } },
  })
  let unchanged: readonly string[] = []
  await until(
    () => `all Deployments of ${namespace} have changed; but ${unchanged.join(', ')}`,
    async () => {
      const now = generations(await plain.list(deployments))
      unchanged = [...before].flatMap(([name, at]) => ((now.get(name) ?? 0) > at ? [] : [name]))
      return unchanged.length === 0
    },
  )
  for (const manifest of manifests) await plain.delete(pathOf(manifest))
  await plain.delete(space)
  await plain.until(space, (object) => object === undefined)
  return manifests.length
}

function pathOf({ kind, metadata }: PlainObject): string {
  const plural = `${String(kind).toLowerCase()}s`
  return `${TUTTI_API}/namespaces/${metadata.namespace}/${plural}/${metadata.name}`
}

function generations(objects: readonly PlainObject[]): ReadonlyMap<string, number> {
  return new Map(
    objects.map(({ metadata }) => [String(metadata.name), Number(metadata.generation)]),
  )
}

/** Counts the objects of every kind that can be listed but Events, which the API server itself forgets after an hour. */
async function countObjects({ plain }: ApiServer): Promise<number> {
  const { groups } = await plain.get('/apis')
  const versions: readonly string[] = groups.map(({ preferredVersion }: PlainObject) => {
    return `/apis/${preferredVersion.groupVersion}`
  })
  let count = 0
  for (const version of ['/api/v1', ...versions]) {
    const { resources } = await plain.get(version)
    for (const { name, verbs } of resources) {
      const isStored = verbs.includes('list') && !name.includes('/') && name !== 'componentstatuses'
      if (isStored && name !== 'events') count += (await plain.list(`${version}/${name}`)).length
    }
  }
  return count
}
