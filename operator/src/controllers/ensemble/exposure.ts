import type { EnsembleSpec } from '@tutti/ensemble'
import { type Client, type HttpRoute, type Stored } from '@tutti/kube'
import type { EnsembleObject } from '../../api/kinds.ts'
import { ENSEMBLE } from '../../api/kinds.ts'
import { buildEnsembleRoutes } from '../../resources/ensemble-routes.ts'
import {
  Applier,
  type ApplierOptions,
  type ChildOutcome,
  type SyncResult,
} from '../../runtime/apply.ts'
import type { Cache } from '../../runtime/cache.ts'
import { toDeletion } from '../../runtime/deletion.ts'
import { OwnerMoved } from '../../runtime/owner-check.ts'
import { isRefusal } from '../../runtime/refusal.ts'
import { readEdgeToken } from '../namespace/exposed-ensembles.ts'

/** What keeps requests from outside away. */
export interface ExposureProblem {
  readonly reason: string
  readonly message: string
  /** True if it ends by itself. */
  readonly isPassing?: boolean
}

/** Makes what brings requests from outside, and says why they do not come. */
export class Exposure {
  readonly #client: Client
  readonly #httpRoutes: Cache<HttpRoute>
  readonly #withGateway: Applier
  readonly #withoutGateway: Applier

  constructor(
    o: Omit<ApplierOptions, 'caches'> & {
      /** Of Ingresses. */
      readonly ingresses: ApplierOptions['caches'][number]
      /** Of a cluster that may have no Gateway API. */
      readonly httpRoutes: Cache<HttpRoute>
    },
  ) {
    this.#client = o.client
    this.#httpRoutes = o.httpRoutes
    this.#withoutGateway = new Applier({ ...o, caches: [o.ingresses] })
    this.#withGateway = new Applier({ ...o, caches: [o.ingresses, o.httpRoutes] })
  }

  forget(key: string): void {
    this.#withGateway.forget(key)
    this.#withoutGateway.forget(key)
  }

  /**
   * @param o.isLive - the object is as the server has it, not as a cache does.
   * @throws what is worth another try; OwnerMoved if something was to be changed for an Ensemble that has moved.
   */
  async sync(
    object: Stored<EnsembleObject>,
    spec: EnsembleSpec,
    { isLive, signal }: { readonly isLive: boolean; readonly signal: AbortSignal },
  ): Promise<ExposureProblem | undefined> {
    const { namespace = '' } = object.metadata
    const { expose } = spec
    const isGateway = expose?.gateway !== undefined
    const hasGateway = this.#httpRoutes.isServed
    const applier = hasGateway ? this.#withGateway : this.#withoutGateway
    const ensemble = { resource: ENSEMBLE, object, isLive }
    const routes = isGateway && !hasGateway ? [] : routesOf(object, expose)
    const { outcomes, owner } = await applier.sync(ensemble, routes, { signal })
    if (owner !== 'present') throw new OwnerMoved(owner)
    const problem = findProblem(outcomes)
    if (isGateway && !hasGateway) return GATEWAY_MISSING
    const token = await readEdgeToken(this.#client, { namespace, expose, signal })
    if (token.kind === 'missing') return { reason: 'TokenMissing', message: token.message }
    return problem ?? (isGateway ? findRefusal(this.#routeOf(object)) : undefined)
  }

  #routeOf({ metadata }: Stored<EnsembleObject>): Stored<HttpRoute> | undefined {
    return this.#httpRoutes.get(`${metadata.namespace}/${metadata.name}`)
  }
}

function routesOf(
  { metadata: { name, namespace = '' } }: Stored<EnsembleObject>,
  expose: EnsembleSpec['expose'],
): ReturnType<typeof buildEnsembleRoutes> {
  return expose === undefined ? [] : buildEnsembleRoutes({ name, namespace, expose })
}

const GATEWAY_MISSING: ExposureProblem = {
  reason: 'GatewayApiMissing',
  message:
    'expose.gateway: the cluster has no HTTPRoute (gateway.networking.k8s.io/v1); install Gateway API, or use expose.ingress',
}

/** What only a person can set right goes before what passes. @throws what is worth another try. */
function findProblem(outcomes: SyncResult['outcomes']): ExposureProblem | undefined {
  const problems = outcomes.map(toProblem).filter((problem) => problem !== undefined)
  return problems.find(({ isPassing }) => isPassing !== true) ?? problems[0]
}

/** @throws what is worth another try. */
function toProblem(outcome: ChildOutcome): ExposureProblem | undefined {
  const { resource, result } = outcome
  if (result === 'nameConflict') return { reason: 'RouteConflict', message: outcome.message }
  if (result === 'terminating') {
    const deletion = toDeletion(outcome)
    return deletion && { reason: 'Terminating', ...deletion }
  }
  if (result !== 'refused' && result !== 'failed') return undefined
  const { error } = outcome
  if (!isRefusal(error)) throw error
  return { reason: 'RouteRefused', message: `${resource.kind}: ${error.message}` }
}

/** What the Gateway says of the route; nothing yet is no problem. */
function findRefusal(route: Stored<HttpRoute> | undefined): ExposureProblem | undefined {
  for (const { conditions = [] } of route?.status?.parents ?? []) {
    const bad = conditions.find(
      ({ type, status }) => (type === 'Accepted' || type === 'ResolvedRefs') && status === 'False',
    )
    if (bad !== undefined) {
      return { reason: 'RouteNotAccepted', message: `HTTPRoute: ${bad.reason}: ${bad.message}` }
    }
  }
  return undefined
}
