import { until } from '@tutti/chassis/testing'
import type { ApiServer, PlainObject } from '@tutti/kube/testing'
import type { Test } from 'tap'
import { applyRoles, operatorOf, startChartPod } from '../chart/chart-pods.ts'
import type { Rendered } from '../chart/helm.ts'

const TUTTI_API = '/apis/tutti.dev/v1alpha1'
const DEPLOYMENTS = '/apis/apps/v1'
const POLICIES = '/apis/networking.k8s.io/v1'

/** Two tenants, whose Models and Ensembles are of the same names. */
export const TENANTS = ['team-a', 'team-b'] as const

const STEPS = ['first', 'second']

/** A Model for each step, and the Ensemble of both. */
export function manifestsOf(namespace: string): readonly Rendered[] {
  const models = STEPS.map((name) => ({
    ...headOf('Model', namespace, name),
    spec: { modelFormat: { name: 'onnx' }, storageUri: 'https://storage.example/add-one.tar' },
  }))
  const ensemble = {
    ...headOf('Ensemble', namespace, 'chain'),
    spec: {
      inputs: [{ name: 'x', datatype: 'FP32', shape: [-1] }],
      outputs: [{ name: 'y', from: 'second.y' }],
      steps: [
        { name: 'first', modelRef: { name: 'first' }, inputMap: { x: 'x' } },
        { name: 'second', modelRef: { name: 'second' }, inputMap: { x: 'first.y' } },
      ],
    },
  }
  return [...models, ensemble]
}

function headOf(kind: string, namespace: string, name: string): Rendered {
  return { apiVersion: 'tutti.dev/v1alpha1', kind, metadata: { namespace, name } }
}

/** Says whose pods, of which namespaces, may call the router of a namespace, and how it reaches steps. */
export async function setRouter(
  { plain }: ApiServer,
  namespace: string,
  spec: { readonly clientNamespaces: readonly string[]; readonly stepTransport?: string },
): Promise<void> {
  const manifest = { ...headOf('Router', namespace, 'default'), spec }
  await plain.create(`${TUTTI_API}/namespaces/${namespace}/routers`, manifest)
}

/**
 * The policies and Deployments that the operator makes on a real API server, told what the chart tells it: for the tenants, and for
 * what `helm test` serves. Policies and Deployments of an earlier operator are deleted first.
 */
export async function serveNamespaces(
  t: Test,
  server: ApiServer,
  chart: readonly Rendered[],
): Promise<readonly Rendered[]> {
  const { plain } = server
  const tests = chart.filter(({ apiVersion }) => apiVersion.startsWith('tutti.dev/'))
  const manifests = [...TENANTS.flatMap(manifestsOf), ...tests]
  await forget(server)
  await applyRoles(server, chart)
  for (const manifest of manifests) {
    const { kind, metadata } = manifest
    const plural = `${kind.toLowerCase()}s`
    const path = `${TUTTI_API}/namespaces/${metadata.namespace}/${plural}/${metadata.name}`
    await plain.apply(path, manifest)
  }
  const operator = await startChartPod(t, server, operatorOf(chart))
  const wanted = new Set(manifests.flatMap(deploymentsOf))
  let left: readonly string[] = []
  // Policies are made before the Deployments whose pods they are for.
  await until(
    () => `all Deployments are there: ${left.join(', ')}\n${operator.lines.slice(-20).join('\n')}`,
    async () => {
      const made = new Set((await plain.list(`${DEPLOYMENTS}/deployments`)).map(keyOf))
      left = [...wanted].filter((key) => !made.has(key))
      return left.length === 0
    },
  )
  await operator.stop()
  const deployments = await plain.list(`${DEPLOYMENTS}/deployments`)
  const policies = await plain.list(`${POLICIES}/networkpolicies`)
  return [
    ...deployments.map((object) => ({ ...object, kind: 'Deployment' })),
    ...policies.map((object) => ({ ...object, kind: 'NetworkPolicy' })),
  ]
}

/** Keys of the objects that the operator creates for a Model or an Ensemble. */
function deploymentsOf({ kind, metadata: { namespace, name } }: Rendered): readonly string[] {
  const router = `${namespace} router`
  return kind === 'Model' ? [router, `${namespace} step ${name}`] : [router]
}

function keyOf({ metadata: { namespace, labels } }: PlainObject): string {
  const model = labels['tutti.dev/model']
  return model === undefined ? `${namespace} router` : `${namespace} step ${model}`
}

/** Deletes what an operator would only change. Models stay, because no garbage collector runs here. */
async function forget({ plain }: ApiServer): Promise<void> {
  const kinds = [
    [DEPLOYMENTS, 'deployments'],
    [POLICIES, 'networkpolicies'],
  ]
  for (const [group, plural] of kinds) {
    for (const { metadata } of await plain.list(`${group}/${plural}`)) {
      await plain.delete(`${group}/namespaces/${metadata.namespace}/${plural}/${metadata.name}`)
    }
  }
}
