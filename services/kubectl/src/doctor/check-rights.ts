import { z } from 'zod'
import type { Cluster } from '../cluster.ts'
import type { ClusterFinding } from './cluster-finding.ts'

interface Right {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly subresource?: string
  /** Commands of `kubectl tutti` that need the right. */
  readonly commands: string
}

const LISTS = 'status, explain, logs, restart, trace'
/** Rights that the commands of the plugin need from the API server. */
const RIGHTS: readonly Right[] = [
  { verb: 'list', group: 'tutti.dev', resource: 'models', commands: LISTS },
  { verb: 'list', group: 'tutti.dev', resource: 'ensembles', commands: LISTS },
  { verb: 'list', group: 'tutti.dev', resource: 'routers', commands: 'status' },
  { verb: 'list', group: '', resource: 'pods', commands: 'status, logs, restart, trace' },
  { verb: 'list', group: 'events.k8s.io', resource: 'events', commands: 'status, restart' },
  { verb: 'list', group: 'apps', resource: 'controllerrevisions', commands: 'explain' },
  { verb: 'get', group: '', resource: 'pods', subresource: 'log', commands: 'logs' },
  { verb: 'list', group: 'apps', resource: 'deployments', commands: 'restart' },
  { verb: 'patch', group: 'apps', resource: 'deployments', commands: 'restart' },
  { verb: 'get', group: '', resource: 'pods', subresource: 'portforward', commands: 'trace' },
  { verb: 'create', group: '', resource: 'pods', subresource: 'portforward', commands: 'trace' },
]

const Review = z.object({ status: z.object({ allowed: z.boolean() }) })

/**
 * Asks the API server for the user's rights in the namespace.
 *
 * @returns one finding for each missing right, or one that all are there.
 */
export async function checkRights({
  transport,
  namespace,
}: Cluster): Promise<readonly ClusterFinding[]> {
  const allowed = await Promise.all(
    RIGHTS.map(async ({ verb, group, resource, subresource }) => {
      const { body } = await transport.request({
        method: 'POST',
        path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
        body: {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SelfSubjectAccessReview',
          spec: { resourceAttributes: { namespace, verb, group, resource, subresource } },
        },
        isIdempotent: true,
      })
      return Review.parse(body).status.allowed
    }),
  )
  const refused = RIGHTS.filter((_, i) => allowed[i] === false)
  if (refused.length === 0) {
    const found = `you may use all commands of kubectl tutti in ${namespace}`
    return [{ check: 'rights', status: 'ok', found }]
  }
  const mending =
    "ask for the ClusterRole edit in this namespace, which the chart's rbac.aggregateRoles extends to Models and Ensembles"
  return refused.map(({ verb, resource, subresource, commands }) => {
    const what = subresource === undefined ? resource : `${resource}/${subresource}`
    const found = `you may not ${verb} ${what} in ${namespace}, for kubectl tutti ${commands}`
    return { check: 'rights', status: 'note', found, mending }
  })
}
