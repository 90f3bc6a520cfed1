import {
  DEPLOYMENT,
  type Deployment,
  defineResource,
  type KubeObject,
  type Stored,
} from '@tutti/kube'
import manifest from '../../package.json' with { type: 'json' }
import type { Cluster, Reader } from '../cluster.ts'
import { ENSEMBLE, MODEL, ROUTER } from '../resources.ts'
import { type ClusterFinding, unseen } from './cluster-finding.ts'

/** Oldest version of Kubernetes that Tutti runs on, as in the chart's `kubeVersion`. */
export const OLDEST_KUBERNETES = { major: 1, minor: 31 }
const TUTTI_KINDS = [MODEL, ENSEMBLE, ROUTER]
const VERSION_LABEL = 'app.kubernetes.io/version'
const PART_OF = 'app.kubernetes.io/part-of=tutti'

interface StatefulSet extends KubeObject {
  readonly spec?: { readonly replicas?: number }
  readonly status?: { readonly readyReplicas?: number }
}
const STATEFUL_SET = defineResource<StatefulSet>('apps/v1', 'statefulsets', 'StatefulSet')

/** Checks that the API server is new enough. @param version - its version, such as `v1.33.2+k3s1`. */
export function checkKubernetes(version: string): ClusterFinding {
  const check = 'kubernetes'
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? []
  const found = `the API server is of version ${version}`
  const { major: oldest, minor: oldestMinor } = OLDEST_KUBERNETES
  const isNew = Number(major) > oldest || (Number(major) === oldest && Number(minor) >= oldestMinor)
  if (isNew) return { check, status: 'ok', found }
  const mending = `upgrade the cluster to Kubernetes ${oldest}.${oldestMinor} or newer`
  return { check, status: 'missing', found, mending }
}

/** Checks that the cluster knows Tutti's custom resources. */
export async function checkKinds({ client }: Cluster): Promise<ClusterFinding> {
  const check = 'custom resources'
  const served = await Promise.all(TUTTI_KINDS.map((kind) => client.serves(kind)))
  const missing = TUTTI_KINDS.filter((_, i) => served[i] === false).map(({ kind }) => kind)
  const names = TUTTI_KINDS.map(({ kind }) => kind).join(', ')
  if (missing.length === 0) return { check, status: 'ok', found: `the cluster knows ${names}` }
  const found = `the cluster does not know ${missing.join(', ')}`
  const mending = 'install the chart, which brings them (crds.enabled)'
  return { check, status: 'missing', found, mending }
}

/** Checks the operators of the chart, in all namespaces. */
export async function checkOperators(reader: Reader): Promise<readonly ClusterFinding[]> {
  const labelSelector = `${PART_OF},app.kubernetes.io/component=operator`
  const deployments = await reader.list(DEPLOYMENT, { labelSelector })
  if (deployments === undefined) return [unseen('operator', reader.refused.get('deployments'))]
  if (deployments.length > 0) return deployments.map(toOperatorFinding)
  const found = 'no namespace has an operator of the chart'
  const mending = 'install the chart; without an operator nothing happens to Models and Ensembles'
  return [{ check: 'operator', status: 'missing', found, mending }]
}

/** Builds the finding about an operator: its available pods, and whether its version is this program's. */
export function toOperatorFinding({ metadata, spec, status }: Stored<Deployment>): ClusterFinding {
  const check = 'operator'
  const { name, namespace = '', labels = {} } = metadata
  const version = labels[VERSION_LABEL] ?? 'unknown'
  const { availableReplicas: available = 0 } = status ?? {}
  const counted = `${available} of ${spec.replicas ?? 1} pods available`
  const found = `${namespace}/${name}, version ${version}: ${counted}`
  if (available === 0) {
    const mending = `see why: kubectl -n ${namespace} describe deployment ${name}, and kubectl -n ${namespace} logs deployment/${name}`
    return { check, status: 'missing', found, mending }
  }
  if (version === manifest.version) return { check, status: 'ok', found }
  const mending = `this program is of version ${manifest.version}: use the one of the operator's, or upgrade the chart`
  return { check, status: 'note', found, mending }
}

/** Checks the NATS servers of the chart, in all namespaces. */
export async function checkBrokers(reader: Reader): Promise<readonly ClusterFinding[]> {
  const check = 'nats'
  const labelSelector = `${PART_OF},app.kubernetes.io/component=nats`
  const sets = await reader.list(STATEFUL_SET, { labelSelector })
  if (sets === undefined) return [unseen(check, reader.refused.get('statefulsets'))]
  if (sets.length > 0) return sets.map(toBrokerFinding)
  const found = 'no namespace has a broker of the chart'
  const mending = 'nothing, if nats.external names yours'
  return [{ check, status: 'note', found, mending }]
}

function toBrokerFinding({ metadata, spec, status }: Stored<StatefulSet>): ClusterFinding {
  const { name, namespace = '' } = metadata
  const wanted = spec?.replicas ?? 1
  const { readyReplicas: ready = 0 } = status ?? {}
  const found = `${namespace}/${name}: ${ready} of ${wanted} servers ready`
  if (ready >= wanted) return { check: 'nats', status: 'ok', found }
  const mending = `see why: kubectl -n ${namespace} describe statefulset,pods -l app.kubernetes.io/part-of=tutti`
  return { check: 'nats', status: ready === 0 ? 'missing' : 'note', found, mending }
}
