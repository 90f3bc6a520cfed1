import type { FlagTable } from '@tutti/chassis'
import { KUBECTL_FORMAT_FLAG, withFlags } from '@tutti/command-line/command'
import { renderFindings } from '@tutti/command-line/results'
import { ServeError } from '@tutti/errors'
import { z } from 'zod'
import { CLUSTER_FLAGS, type Cluster, Reader, withCluster } from '../cluster.ts'
import { ENSEMBLE, MODEL, ROUTER } from '../resources.ts'
import { checkRights } from './check-rights.ts'
import { ClusterDoctorResult, type ClusterFinding, unseen } from './cluster-finding.ts'
import { checkBrokers, checkKinds, checkKubernetes, checkOperators } from './installation-checks.ts'
import {
  checkDevices,
  checkExposure,
  checkMetrics,
  checkWatched,
  type NamespaceResources,
} from './namespace-checks.ts'

export const CLUSTER_DOCTOR_FLAGS = {
  ...CLUSTER_FLAGS,
  format: KUBECTL_FORMAT_FLAG,
} as const satisfies FlagTable

const Version = z.object({ gitVersion: z.string() })
const Groups = z.object({ groups: z.array(z.object({ name: z.string() })) })

export const doctorClusterCommand = withFlags(
  {
    usage: 'kubectl tutti doctor [FLAGS]',
    flags: CLUSTER_DOCTOR_FLAGS,
    result: ClusterDoctorResult,
  },
  async ({ flags, positionals }, environment) => {
    if (positionals.length > 0) {
      throw new ServeError('FLAG_INVALID', `got '${positionals[0]}', want flags only`)
    }
    const findings = await withCluster(flags, environment, examine)
    environment.out(renderFindings(findings, flags.format))
    return findings.some(({ status }) => status === 'missing') ? 1 : 0
  },
)

async function examine(cluster: Cluster): Promise<readonly ClusterFinding[]> {
  const { client, transport } = cluster
  const reader = new Reader(client)
  const version = await transport.request({ method: 'GET', path: '/version' })
  const kinds = await checkKinds(cluster)
  const [operators, brokers, rights] = await Promise.all([
    checkOperators(reader),
    checkBrokers(reader),
    checkRights(cluster),
  ])
  return [
    checkKubernetes(Version.parse(version.body).gitVersion),
    kinds,
    ...operators,
    ...brokers,
    ...(kinds.status === 'ok' ? await examineNamespace(cluster, reader) : []),
    ...rights,
  ]
}

async function examineNamespace(
  { transport, namespace }: Cluster,
  reader: Reader,
): Promise<readonly ClusterFinding[]> {
  const [models, ensembles, routers, found] = await Promise.all([
    reader.list(MODEL, { namespace }),
    reader.list(ENSEMBLE, { namespace }),
    reader.list(ROUTER, { namespace }),
    transport.request({ method: 'GET', path: '/apis' }),
  ])
  if (models === undefined || ensembles === undefined || routers === undefined) {
    return [...reader.refused]
      .filter(([plural]) => [MODEL.plural, ENSEMBLE.plural, ROUTER.plural].includes(plural))
      .map(([, refusal]) => unseen('namespace', refusal))
  }
  const groups = new Set(Groups.parse(found.body).groups.map(({ name }) => name))
  const resources: NamespaceResources = { namespace, models, ensembles, routers }
  return [
    checkWatched(resources, Date.now()),
    ...checkMetrics(resources, groups),
    ...(await checkDevices(resources, reader)),
    ...(await checkExposure(resources, reader, groups)),
  ]
}
