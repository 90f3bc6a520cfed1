import { DEFAULT_DEVICE, UNSEEN } from '@tutti/api'
import { absent } from '@tutti/command-line/results'
import { defineResource, type KubeObject, type Resource, type Stored } from '@tutti/kube'
import type { Reader } from '../cluster.ts'
import type { EnsembleObject, ModelObject, RouterObject, ScalingFields } from '../resources.ts'
import { type ClusterFinding, unseen } from './cluster-finding.ts'

interface Node extends KubeObject {
  readonly status?: { readonly allocatable?: Readonly<Record<string, string>> }
}
const NODE: Resource<Node> = {
  ...defineResource<Node>('v1', 'nodes', 'Node'),
  namespaced: false,
}
const INGRESS_CLASS: Resource = {
  ...defineResource('networking.k8s.io/v1', 'ingressclasses', 'IngressClass'),
  namespaced: false,
}
const IS_DEFAULT_CLASS = 'ingressclass.kubernetes.io/is-default-class'
const GATEWAY_API = 'gateway.networking.k8s.io'
const METRICS_SERVER = 'metrics.k8s.io'

/** The API that an autoscaler reads for each type of its metrics, and what offers it. */
const METRIC_APIS: Readonly<Record<string, readonly [group: string, offer: string]>> = {
  Resource: [METRICS_SERVER, 'metrics-server'],
  ContainerResource: [METRICS_SERVER, 'metrics-server'],
  Pods: ['custom.metrics.k8s.io', 'an adapter such as prometheus-adapter'],
  Object: ['custom.metrics.k8s.io', 'an adapter such as prometheus-adapter'],
  External: ['external.metrics.k8s.io', 'an adapter such as KEDA'],
}
/** An operator looks at a new resource within this time, even if it has yet to start. `status`, which only hints at it, waits less. */
const LOOK_MS = 60_000

/** The resources of the checked namespace. */
export interface NamespaceResources {
  readonly namespace: string
  readonly models: readonly Stored<ModelObject>[]
  readonly ensembles: readonly Stored<EnsembleObject>[]
  readonly routers: readonly Stored<RouterObject>[]
}

const counted = ({ length }: readonly unknown[], kind: string): string =>
  `${length} ${kind}${length === 1 ? '' : 's'}`
const nameOf = ({ metadata }: Stored<KubeObject>): string => metadata.name

/** Checks that an operator has looked at each resource that is older than a minute. @param nowMs - since the epoch. */
export function checkWatched(o: NamespaceResources, nowMs: number): ClusterFinding {
  const check = 'namespace'
  const all = [...o.models, ...o.ensembles]
  if (all.length === 0) {
    const found = `${o.namespace} has no Models and no Ensembles, or is not there`
    const mending = "see that the namespace's name is right"
    return { check, status: 'note', found, mending }
  }
  const unwatched = all.filter(({ metadata, status }) => {
    const ageMs = nowMs - Date.parse(metadata.creationTimestamp)
    return (status?.observedGeneration ?? UNSEEN) === UNSEEN && ageMs > LOOK_MS
  })
  if (unwatched.length === 0) {
    const counts = `${counted(o.models, 'Model')} and ${counted(o.ensembles, 'Ensemble')}`
    const found = `${o.namespace} has ${counts}; kubectl tutti status tells how they are`
    return { check, status: 'ok', found }
  }
  const found = `no operator has looked at ${unwatched.length} of ${all.length} resources in ${o.namespace}`
  const mending =
    'see that an operator runs, and that it serves this namespace: scope.mode and scope.namespaces of the chart'
  return { check, status: 'missing', found, mending, neededBy: unwatched.map(nameOf) }
}

/** Checks that the cluster serves the metrics that autoscalers of Models and Routers read. @param groups - groups of the served APIs. */
export function checkMetrics(
  { models, routers }: NamespaceResources,
  groups: ReadonlySet<string>,
): readonly ClusterFinding[] {
  const check = 'metrics'
  const needs = new Map<string, string[]>([[METRICS_SERVER, []]])
  const offers = new Map(Object.values(METRIC_APIS))
  const types: readonly (readonly [name: string, types: readonly string[]])[] = [
    ...models.map((one) => [nameOf(one), metricTypesOf(one.spec?.scaling)] as const),
    ...routers.map((one) => [`Router ${nameOf(one)}`, routerMetricTypesOf(one)] as const),
  ]
  for (const [name, used] of types) {
    for (const group of new Set(used.flatMap((type) => METRIC_APIS[type]?.[0] ?? []))) {
      needs.set(group, [...(needs.get(group) ?? []), name])
    }
  }
  return [...needs].map(([group, neededBy]) => {
    if (groups.has(group)) return { check, status: 'ok', found: `the cluster serves ${group}` }
    const found = `the cluster does not serve ${group}`
    const mending = `install ${offers.get(group)} for what an HPA scales`
    return absent({ check, found, mending }, neededBy)
  })
}

/** Lists the types of the metrics that an HPA reads. */
function metricTypesOf({ provider, metrics = [] }: ScalingFields = {}): readonly string[] {
  return provider === 'HPA' ? metrics.map(({ type = '' }) => type) : []
}

/** A Router has an HPA where it has bounds, and by its CPU where it names no metrics. */
function routerMetricTypesOf({ spec }: RouterObject): readonly string[] {
  const { scaling = {} } = spec ?? {}
  const { minReplicas, maxReplicas, metrics, behavior } = scaling
  const isBounded = [minReplicas, maxReplicas, metrics, behavior].some((one) => one !== undefined)
  const { provider = isBounded ? 'HPA' : 'None' } = scaling
  return metricTypesOf({ provider, metrics: metrics ?? [{ type: 'ContainerResource' }] })
}

/** Checks that nodes offer the devices of Models with an `accelerator`. */
export async function checkDevices(
  { models }: NamespaceResources,
  reader: Pick<Reader, 'list' | 'refused'>,
): Promise<readonly ClusterFinding[]> {
  const check = 'devices'
  const needs = new Map<string, string[]>([[DEFAULT_DEVICE, []]])
  for (const model of models) {
    const { accelerator } = model.spec ?? {}
    // Claims of devices are no resources of nodes; the Model's status says what is wrong with them.
    if (accelerator === undefined || accelerator.claims !== undefined) continue
    const { resourceName = DEFAULT_DEVICE } = accelerator
    needs.set(resourceName, [...(needs.get(resourceName) ?? []), nameOf(model)])
  }
  const nodes = await reader.list(NODE, {})
  if (nodes === undefined) return [unseen(check, reader.refused.get('nodes'))]
  return [...needs].map(([device, neededBy]) => {
    const counts = nodes.map(({ status }) => Number(status?.allocatable?.[device] ?? 0))
    const offering = counts.filter((count) => count > 0)
    const found = `${offering.length} of ${nodes.length} nodes offer ${device}`
    if (offering.length > 0) return { check, status: 'ok', found }
    const mending = `add a node with such devices, and the device plugin that offers ${device}`
    return absent({ check, found, mending }, neededBy)
  })
}

/** Checks the classes of Ingress and the Gateway API, for exposed Ensembles. @param groups - groups of the served APIs. */
export async function checkExposure(
  { ensembles }: NamespaceResources,
  reader: Reader,
  groups: ReadonlySet<string>,
): Promise<readonly ClusterFinding[]> {
  const byGateway = ensembles.filter(({ spec }) => spec?.expose?.gateway !== undefined)
  const byIngress = ensembles.filter(({ spec }) => spec?.expose?.ingress !== undefined)
  const classes = await reader.list(INGRESS_CLASS, {})
  return [
    classes === undefined
      ? unseen('exposure', reader.refused.get('ingressclasses'))
      : checkIngress(byIngress, classes),
    checkGateway(byGateway, groups),
  ]
}

function checkIngress(
  ensembles: readonly Stored<EnsembleObject>[],
  classes: readonly Stored<KubeObject>[],
): ClusterFinding {
  const check = 'exposure'
  const names = classes.map(nameOf)
  const hasDefault = classes.some(
    ({ metadata }) => metadata.annotations?.[IS_DEFAULT_CLASS] === 'true',
  )
  const lacking = ensembles.filter(({ spec }) => {
    const name = spec?.expose?.ingress?.className
    return name === undefined ? !hasDefault : !names.includes(name)
  })
  const listed =
    names.length === 0 ? 'no class of Ingress' : `classes of Ingress: ${names.join(', ')}`
  const found = hasDefault || names.length === 0 ? listed : `${listed}; none is the default`
  if (lacking.length === 0 && names.length > 0) return { check, status: 'ok', found }
  const mending =
    'install an ingress controller, and name its class in expose.ingress.className or mark it as the default'
  return absent({ check, found, mending }, lacking.map(nameOf))
}

function checkGateway(
  ensembles: readonly Stored<EnsembleObject>[],
  groups: ReadonlySet<string>,
): ClusterFinding {
  const check = 'exposure'
  if (groups.has(GATEWAY_API))
    return { check, status: 'ok', found: 'the cluster has the Gateway API' }
  const found = 'the cluster does not have the Gateway API'
  const mending = 'install it with its controller, for Ensembles with expose.gateway'
  return absent({ check, found, mending }, ensembles.map(nameOf))
}
