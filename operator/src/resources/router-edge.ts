import type { EdgeRoutes } from '@tutti/api'
import type { Desired, Secret, TokenIssuer } from '@tutti/kube'
import { toCanonicalJson } from '../runtime/canonical.ts'
import { ROUTER_LABELS, ROUTER_NAMES } from './router-names.ts'

/** The key of the Secret that the router reads. */
const EDGE_KEY = 'edge.json'

type Route = EdgeRoutes['routes'][number]

/** An Ensemble that is reached from outside. */
export interface ExposedEnsemble {
  /** Served name. */
  readonly modelName: string
  readonly hosts: readonly string[]
  /** Who is let in; without identities: everybody. */
  readonly lock: Pick<Route, 'identities'>
  /** Another for each state of the above. Routers repeat it once it counts there. */
  readonly revision: string
}

/** Who is reached from outside, and by whom. */
export interface Exposed {
  readonly ensembles: readonly ExposedEnsemble[]
  /** Absent: no ServiceAccount is let in. */
  readonly issuer?: TokenIssuer | undefined
  /** ServiceAccounts are to be let in, be there an issuer or not. */
  readonly usesIssuer?: boolean
}

/** Who is reached from outside, as the routers of the namespace read it. */
export function buildEdgeSecret(
  namespace: string,
  { ensembles, issuer }: Exposed,
): Desired<Secret> {
  const routes = ensembles
    .toSorted((one, other) => (one.modelName < other.modelName ? -1 : 1))
    .map(({ modelName, hosts, lock, revision }) => ({
      hosts: hosts.toSorted(),
      models: [modelName],
      revision,
      ...lock,
    }))
  const verified = issuer && { issuer: { url: issuer.url, keys: [...issuer.keys] } }
  const text = toCanonicalJson({ routes, ...verified } satisfies EdgeRoutes)
  return {
    metadata: { name: ROUTER_NAMES.edge, namespace, labels: ROUTER_LABELS },
    type: 'Opaque',
    data: { [EDGE_KEY]: Buffer.from(text).toString('base64') },
  }
}
