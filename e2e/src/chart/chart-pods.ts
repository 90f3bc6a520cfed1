import { type ProcessOptions, type StartedProcess, startProcess } from '@tutti/chassis/testing'
import {
  type ApiServer,
  type ApiServerOptions,
  installCrd,
  startApiServer,
} from '@tutti/kube/testing'
import type { Test } from 'tap'
import { ROOT } from '../serving.ts'
import type { Rendered } from './helm.ts'

const OPERATOR = `${ROOT}operator/dist/main.js`
const ROLES = ['ServiceAccount', 'ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding']

/** An API server with what the chart says of accounts and roles, and its CRDs. */
export async function startChartCluster(
  t: Test,
  objects: readonly Rendered[],
  o: ApiServerOptions = {},
): Promise<ApiServer> {
  const server = await startApiServer(o)
  t.teardown(() => server.stop())
  await createNamespace(server, 'tutti-system')
  for (const object of objects) {
    if (object['kind'] === 'CustomResourceDefinition') await installCrd(server.plain, object)
  }
  await applyRoles(server, objects)
  return server
}

/** One whose pods have to be restricted. */
export async function createNamespace({ plain }: ApiServer, name: string): Promise<void> {
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
  await plain.create('/api/v1/namespaces', { metadata: { name, labels } })
}

/** Gives the accounts of the chart their rights, beside those that others have. */
export async function applyRoles(
  { plain }: ApiServer,
  objects: readonly Rendered[],
): Promise<void> {
  for (const object of objects) {
    if (!ROLES.includes(object['kind'])) continue
    const { apiVersion, kind, metadata } = object
    const group = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`
    const space = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`
    await plain.apply(`${group}${space}/${kind.toLowerCase()}s/${metadata.name}`, object, 'helm')
  }
}

/** The operator's Deployment, whatever the release calls it. @throws Error if there is none. */
export function operatorOf(objects: readonly Rendered[]): Rendered {
  const found = objects.find(({ kind, metadata }) => {
    return kind === 'Deployment' && metadata.labels['app.kubernetes.io/component'] === 'operator'
  })
  if (found === undefined) throw new Error('no Deployment of an operator is rendered')
  return found
}

/** Starts the program of a pod of the chart: its arguments, as its service account, with other ports. */
export async function startChartPod(
  t: Test,
  server: ApiServer,
  workload: Rendered,
  o: Pick<ProcessOptions, 'readyWhen' | 'env'> = {},
): Promise<StartedProcess> {
  const { serviceAccountName, containers } = workload['spec'].template.spec
  const folder = await server.createServiceAccountDir('tutti-system', serviceAccountName)
  const env = {
    KUBERNETES_SERVICE_HOST: server.url.hostname,
    KUBERNETES_SERVICE_PORT: server.url.port,
    TUTTI_SERVICE_ACCOUNT_DIR: folder,
    POD_NAMESPACE: 'tutti-system',
    POD_NAME: 'tutti-operator-0',
    ...o.env,
  }
  const args = containers[0].args.map((arg: string) => arg.replace(/^(--\w+-port)=\d+$/, '$1=0'))
  const started = await startProcess(process.execPath, [OPERATOR, ...args], {
    env,
    ...(o.readyWhen !== undefined && { readyWhen: o.readyWhen, readyTimeoutMs: 120_000 }),
  })
  t.teardown(() => started.stop('SIGKILL'))
  return started
}
