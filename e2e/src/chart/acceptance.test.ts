// needs: apiserver
import { type ApiServer, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { createNamespace, startChartCluster } from './chart-pods.ts'
import { CHART, find, OVERLAYS, type Rendered, render } from './helm.ts'

const WITH_KUBE = { skip: withoutKube('helm') }

/** Every other namespace that an overlay names. */
const NAMESPACES = ['team-a', 'team-b', 'serving-test']

/** API group of the Prometheus operator, which is not here. */
const FOREIGN = 'monitoring.coreos.com'

/** Where objects of a kind are made, from the server's own list. */
function createPaths(server: ApiServer): (object: Rendered) => Promise<string> {
  const lists = new Map<string, Promise<Rendered>>()
  return async ({ apiVersion, kind, metadata }) => {
    const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
    const list = lists.get(group) ?? server.plain.get(group)
    lists.set(group, list)
    const found = (await list)['resources'].find((resource: Rendered) => resource['kind'] === kind)
    if (found === undefined) throw new Error(`the API server has no ${apiVersion} ${kind}`)
    const space = found.namespaced ? `/namespaces/${metadata.namespace}` : ''
    return `${group}${space}/${found.name}`
  }
}

await t.test('on a real API server', WITH_KUBE, async (t) => {
  const crds = (await render()).filter(({ kind }) => kind === 'CustomResourceDefinition')
  const server = await startChartCluster(t, crds)
  for (const name of NAMESPACES) await createNamespace(server, name)
  const pathOf = createPaths(server)
  const refusal = async (path: string, body: Rendered): Promise<string> => {
    const query = 'dryRun=All&fieldValidation=Strict'
    const { status, body: answer } = await server.plain.send('POST', `${path}?${query}`, { body })
    return status === 201 ? '' : `${status} ${answer['message']}`
  }

  await t.test('every object of every overlay is accepted, its pods as restricted', async (t) => {
    await Promise.all(
      OVERLAYS.map(async (overlay) => {
        for (const object of await render({ 'crds.enabled': false }, `--values=${overlay}`)) {
          const { apiVersion, kind, metadata } = object
          if (apiVersion.startsWith(FOREIGN)) continue
          const what = `${overlay.slice(CHART.length)} ${kind} ${metadata.name}`
          t.equal(await refusal(await pathOf(object), object), '', what)
          const pod = podOf(object)
          if (pod !== undefined) t.equal(await refusal(podsIn(metadata), pod), '', `${what}: pod`)
        }
      }),
    )
  })

  await t.test('a pod that is not restricted is refused', async (t) => {
    const values = { 'operator.securityContext.allowPrivilegeEscalation': true }
    const deployment = find(await render(values), 'Deployment', 'tutti-operator')
    const refused = await refusal(podsIn(deployment['metadata']), podOf(deployment) ?? {})
    t.match(refused, /^403 .*violates PodSecurity "restricted/)
  })
})

function podsIn({ namespace }: Rendered): string {
  return `/api/v1/namespaces/${namespace}/pods`
}

/** Makes of an object the pod that its controller would make; undefined for what makes no pods. */
function podOf({ metadata: { namespace }, spec }: Rendered): Rendered | undefined {
  if (spec?.template === undefined) return undefined
  const metadata = { ...spec.template.metadata, name: 'pod', namespace }
  return { metadata, spec: spec.template.spec }
}
