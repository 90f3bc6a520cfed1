import { createHash } from 'node:crypto'
import type { EdgeRoutes } from '@tutti/ensemble'
import type { Desired, Secret } from '@tutti/kube'
import { toCanonicalJson } from '../runtime/canonical.ts'
import { ROUTER_LABELS, ROUTER_NAMES } from './router-names.ts'

/** The key of the Secret, and the file that the router reads. */
export const EDGE_FILE = 'edge.json'

/** An Ensemble that is reached from outside. */
export interface ExposedEnsemble {
  /** Served name. */
  readonly modelName: string
  readonly hosts: readonly string[]
  /** The bearer token that requests must bring; absent: none. */
  readonly token?: string
}

/** Who is reached from outside, as the routers of the namespace read it. */
export function buildEdgeSecret(
  namespace: string,
  exposed: readonly ExposedEnsemble[],
): Desired<Secret> {
  const routes: EdgeRoutes['routes'] = exposed
    .toSorted((one, other) => (one.modelName < other.modelName ? -1 : 1))
    .map(({ modelName, hosts, token }) => ({
      hosts: hosts.toSorted(),
      models: [modelName],
      ...(token !== undefined && {
        tokenSha256: createHash('sha256').update(token).digest('hex'),
      }),
    }))
  const text = toCanonicalJson({ routes } satisfies EdgeRoutes)
  return {
    metadata: { name: ROUTER_NAMES.edge, namespace, labels: ROUTER_LABELS },
    type: 'Opaque',
    data: { [EDGE_FILE]: Buffer.from(text).toString('base64') },
  }
}
