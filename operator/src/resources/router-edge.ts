import type { EdgeRoutes } from '@tutti/api'
import type { Desired, Secret, TokenIssuer } from '@tutti/kube'
import { toCanonicalJson } from '../runtime/canonical.ts'
import { ROUTER_LABELS, ROUTER_NAMES } from './router-names.ts'

/** The key of the Secret that the router reads. */
const EDGE_KEY = 'edge.json'

type Route = EdgeRoutes['routes'][number]

/** An Ensemble that is exposed outside the cluster. */
export interface ExposedEnsemble {
  /** Served name of the Ensemble. */
  readonly modelName: string
  readonly hosts: readonly string[]
  /** Identities that may call the Ensemble; without `identities`, all callers may. */
  readonly lock: Pick<Route, 'identities'>
  /** Digest of the other fields. Routers report this revision when they use it. */
  readonly revision: string
}

/** The exposed Ensembles of a namespace, with the issuer of the ServiceAccount tokens that may call them. */
export interface ExposedEnsembles {
  readonly ensembles: readonly ExposedEnsemble[]
  /** Issuer of ServiceAccount tokens; absent: no ServiceAccount is let in. */
  readonly issuer?: TokenIssuer | undefined
  /** True if an Ensemble lets in ServiceAccounts, even if the issuer cannot be read now. */
  readonly usesIssuer?: boolean
}

/** Builds the Secret from which the routers of a namespace read the exposed Ensembles. Equal input gives equal text. */
export function buildEdgeSecret(
  namespace: string,
  { ensembles, issuer }: ExposedEnsembles,
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
