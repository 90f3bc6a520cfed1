import type { EnsembleSpec } from '@tutti/api'
import {
  type Client,
  type HttpRoute,
  type ParentReference,
  type Stored,
  toKeyString,
} from '@tutti/kube'
import { ENSEMBLE, type EnsembleObject } from '../../api/kinds.ts'
import { buildEnsembleRoutes } from '../../resources/ensemble-routes.ts'
import type { ExposedEnsemble } from '../../resources/router-edge.ts'
import { Applier } from '../../runtime/apply.ts'
import type { Caches } from '../caches.ts'
import { findChildProblem } from '../child-problem.ts'
import type { ControllerParts } from '../context.ts'
import { readExposure } from '../router/exposed-ensembles.ts'
import { IssuerKeys } from '../router/issuer-keys.ts'
import type { ExposureProblem } from './exposure-problem.ts'
import { findIngressProblem, IngressClasses } from './ingress-problem.ts'

/** The result of exposing an Ensemble outside the cluster. */
export interface ExposureResult {
  readonly problem?: ExposureProblem | undefined
  /** Route by which routers must let in requests; absent if no request may come from outside the cluster. */
  readonly route?: Pick<ExposedEnsemble, 'hosts' | 'revision'> | undefined
}

type ExposureCaches = Pick<Caches, 'ingresses' | 'httpRoutes' | 'secrets'>

/** Writes the Ingresses and HTTPRoutes of Ensembles, and finds why requests from outside the cluster do not arrive. */
export class Exposure {
  readonly #client: Client
  readonly #caches: ExposureCaches
  readonly #classes: IngressClasses
  readonly #applier: Applier
  readonly #issuer: IssuerKeys

  constructor({
    client,
    metrics,
    clock,
    caches,
  }: Pick<ControllerParts, 'client' | 'metrics' | 'clock'> & {
    readonly caches: ExposureCaches
  }) {
    this.#client = client
    this.#issuer = new IssuerKeys({ client, clock })
    this.#caches = caches
    this.#classes = new IngressClasses({ client, clock })
    this.#applier = new Applier({ client, metrics, caches: [caches.ingresses, caches.httpRoutes] })
  }

  forget(key: string): void {
    this.#applier.forget(key)
  }

  /**
   * Applies the routes of an Ensemble and reads its tokens.
   *
   * @returns the first problem and the route; both are absent without `spec.expose`.
   * @throws an error that may pass at the next try; OwnerMoved if the Ensemble is gone or edited when something must be written.
   */
  async sync(
    object: Stored<EnsembleObject>,
    spec: EnsembleSpec,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<ExposureResult> {
    const { expose } = spec
    const isGateway = expose?.gateway !== undefined
    const hasGateway = this.#caches.httpRoutes.isServed
    const ensemble = { resource: ENSEMBLE, object }
    const routes = isGateway && !hasGateway ? [] : routesOf(object, expose)
    const result = await this.#applier.sync(ensemble, routes, { signal })
    const problem = findChildProblem(result, REASONS)
    if (isGateway && !hasGateway) return { problem: GATEWAY_MISSING }
    const locked = { client: this.#client, issuer: this.#issuer, signal }
    const { problem: locking, exposed } = await readExposure(object, locked)
    if (locking !== undefined) {
      const { missing, message } = locking
      return { problem: { reason: LOCK_REASONS[missing], message }, route: exposed }
    }
    const found = problem ?? this.#findGatewayProblem(object, expose)
    return {
      problem: found ?? (await this.#findIngressProblem(object, expose, signal)),
      route: exposed,
    }
  }

  async #findIngressProblem(
    { metadata }: Stored<EnsembleObject>,
    expose: EnsembleSpec['expose'],
    signal: AbortSignal,
  ): Promise<ExposureProblem | undefined> {
    if (expose?.ingress === undefined) return undefined
    const { namespace = '' } = metadata
    return await findIngressProblem({
      expose: expose.ingress,
      ingresses: this.#caches.ingresses.byOwner(metadata),
      secretNamed: (name) => this.#caches.secrets.get(toKeyString({ namespace, name })),
      classes: () => this.#classes.read(signal),
    })
  }

  #findGatewayProblem(
    { metadata: { name, namespace = '' } }: Stored<EnsembleObject>,
    expose: EnsembleSpec['expose'],
  ): ExposureProblem | undefined {
    if (expose?.gateway === undefined) return undefined
    const route = this.#caches.httpRoutes.get(`${namespace}/${name}`)
    return findRouteProblem(route, { ...expose.gateway.parentRef, routeIn: namespace })
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

const LOCK_REASONS = { token: 'TokenMissing', issuer: 'IssuerUnreadable' }
const REASONS = { conflict: 'RouteConflict', refused: 'RouteRefused' }

/** The Gateway that a route names, and the namespace of the route. */
interface NamedParent {
  readonly name: string
  readonly namespace?: string | undefined
  readonly sectionName?: string | undefined
  readonly routeIn: string
}

/**
 * Finds the problem that the Gateway reports in the route's status. A route without an answer is pending. Exported for its test.
 */
export function findRouteProblem(
  route: Pick<HttpRoute, 'metadata' | 'status'> | undefined,
  wanted: NamedParent,
): ExposureProblem | undefined {
  const gateway = `Gateway "${wanted.namespace ?? wanted.routeIn}/${wanted.name}"`
  // The answer of a Gateway that the route named before stays for a while, and for ever if no controller has the new one.
  const said = (route?.status?.parents ?? []).filter((one) => isSame(one.parentRef, wanted))
  const { generation = 0 } = route?.metadata ?? {}
  const conditions = said
    .flatMap((one) => one.conditions ?? [])
    .filter(({ observedGeneration = generation }) => observedGeneration >= generation)
  const bad = conditions.find(
    ({ type, status }) => (type === 'Accepted' || type === 'ResolvedRefs') && status === 'False',
  )
  if (bad === undefined) {
    const isTaken = conditions.some(({ type, status }) => type === 'Accepted' && status === 'True')
    if (isTaken) return undefined
    const message = `HTTPRoute: no ${gateway} has taken it up yet; want one whose class has a controller`
    return { reason: 'RoutePending', message, isAwaited: true }
  }
  // Some controllers leave the message empty.
  const why = [bad.reason, bad.message].filter((part) => part !== '').join(': ')
  return { reason: 'RouteNotAccepted', message: `HTTPRoute: ${gateway}: ${why}` }
}

/** Controllers may leave out the listener, but name no other. */
function isSame(parent: ParentReference, wanted: NamedParent): boolean {
  const { name, namespace = wanted.routeIn, sectionName = wanted.sectionName } = parent
  return (
    name === wanted.name &&
    namespace === (wanted.namespace ?? wanted.routeIn) &&
    sectionName === wanted.sectionName
  )
}
