import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { STEPS_HEADER } from '@tutti/protocol'
import type { Caller } from '../backend/caller.ts'
import type { BackendSelector, InferenceBackend } from '../backend/inference-backend.ts'
import { AccessBackend } from './access-backend.ts'
import type { AccessCounts, AccessLog } from './access-log.ts'
import { denied, followGrants } from './access-selector.ts'
import {
  CallerCredentials,
  type Grant,
  type Proof,
  type ServiceAccountProof,
} from './credentials.ts'
import { type Quota, QuotaMeters } from './quota-meter.ts'
import { ServiceAccountTokens, type TokenIssuer } from './service-account-tokens.ts'

/** The models that requests from outside reach under some hosts. Several routes may name one host. */
export interface EdgeRoute {
  /** Lower case, without a port; `*.` at the beginning stands for one label or more. */
  readonly hosts: readonly string[]
  readonly models: readonly string[]
  /** Identities that may call the models; absent: everybody may. */
  readonly identities?: readonly EdgeIdentity[] | undefined
}

/** An identity that a route lets in, and its proofs. */
export interface EdgeIdentity {
  readonly name: string
  /** SHA-256, in hex, of a bearer token that proves the identity. */
  readonly tokenSha256?: string | undefined
  /** ServiceAccount whose tokens prove the identity. */
  readonly serviceAccount?: ServiceAccountProof | undefined
  readonly quota?: Quota | undefined
}

/** All routes of requests from outside. */
export interface EdgeAccess {
  readonly routes: readonly EdgeRoute[]
  /** Issuer of ServiceAccount tokens; absent: none is accepted. */
  readonly issuer?: TokenIssuer | undefined
}

export interface EdgeRulesSource {
  /** Function that returns the routes now: the same object as long as they have not changed. */
  readonly access: () => EdgeAccess
  readonly counts: AccessCounts
  readonly clock: Clock
}

/** The models that a host leads to, and who may call them. */
interface HostRules {
  /** Grants of callers who prove nothing. */
  readonly open: readonly Grant[]
  readonly credentials: CallerCredentials
  readonly models: ReadonlySet<string>
}

const LONGEST_HOST = 253

/** The models of each host, and who may call them. All listeners share one instance, so that an identity has one quota. */
export class EdgeRules {
  readonly #source: EdgeRulesSource
  readonly #meters: QuotaMeters
  #compiled: EdgeAccess | undefined
  #hosts: ReadonlyMap<string, HostRules> = new Map()

  constructor(o: EdgeRulesSource) {
    this.#source = o
    this.#meters = new QuotaMeters(o.clock)
    this.#compile()
  }

  /** Finds the rules of a host. An exact name goes before a wildcard, a longer wildcard before a shorter one. */
  find(host: string): HostRules | undefined {
    this.#compile()
    const exact = this.#hosts.get(host)
    if (exact !== undefined) return exact
    for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1)) {
      const rules = this.#hosts.get(`*${host.slice(dot)}`)
      if (rules !== undefined) return rules
    }
    return undefined
  }

  #compile(): void {
    const access = this.#source.access()
    if (access === this.#compiled) return
    this.#compiled = access
    const { routes, issuer } = access
    const identities = routes.flatMap((route) =>
      (route.identities ?? []).map((identity) => ({ route, identity })),
    )
    this.#meters.replace(
      new Map(identities.map(({ route, identity }) => [meterKey(route, identity), identity.quota])),
    )
    const tokens = issuer && new ServiceAccountTokens(issuer, this.#source.clock)
    const hosts = new Set(routes.flatMap((route) => route.hosts))
    this.#hosts = new Map([...hosts].map((host) => [host, this.#toHost(host, routes, tokens)]))
    this.#source.counts.follow(
      'edge',
      identities.map(({ identity }) => identity.name),
    )
  }

  #toHost(
    host: string,
    routes: readonly EdgeRoute[],
    tokens: ServiceAccountTokens | undefined,
  ): HostRules {
    const own = routes.filter((route) => route.hosts.includes(host))
    return {
      open: own
        .filter(({ identities }) => identities === undefined)
        .map(({ models }) => toGrant(models, undefined)),
      credentials: new CallerCredentials(
        own.flatMap((route) => this.#toProofs(route)),
        tokens,
        this.#source.clock,
      ),
      models: new Set(own.flatMap((route) => route.models)),
    }
  }

  #toProofs(route: EdgeRoute): readonly (readonly [Proof, Grant])[] {
    return (route.identities ?? []).flatMap((identity) => {
      const { name, tokenSha256, serviceAccount } = identity
      const grant = toGrant(route.models, name, this.#meters.get(meterKey(route, identity)))
      return [
        ...(tokenSha256 === undefined ? [] : [[{ tokenSha256 }, grant] as const]),
        ...(serviceAccount === undefined ? [] : [[{ serviceAccount }, grant] as const]),
      ]
    })
  }
}

/**
 * Creates a selector that lets requests from outside reach only the models of their host, as far as their credentials allow.
 *
 * @returns a selector that throws NOT_FOUND for a host without models, UNAUTHENTICATED for credentials that are missing or not
 * known, and ACCESS_DENIED for a request that asks for the times of steps.
 */
export function createEdgeSelector(o: {
  readonly backend: InferenceBackend
  readonly rules: EdgeRules
  readonly log: AccessLog
}): BackendSelector {
  const { backend, rules, log } = o
  return (caller) => {
    if (caller.headers[STEPS_HEADER] !== undefined) {
      const text = `header '${STEPS_HEADER}' is not taken from outside the cluster`
      throw new ServeError('ACCESS_DENIED', text, { details: { field: STEPS_HEADER } })
    }
    const host = hostOf(caller)
    const read = (): HostRules => {
      const found = rules.find(host)
      if (found !== undefined) return found
      throw new ServeError('NOT_FOUND', `host '${host.slice(0, LONGEST_HOST)}' leads to no model`)
    }
    // A host without a lock looks at no credentials: they are for somebody else.
    const grants = followGrants(read, ({ credentials, open }) =>
      log.identify(caller, () => [
        ...(credentials.isEmpty ? [] : credentials.find(caller)),
        ...open,
      ]),
    )
    const refuse = (name: string, identity: string | undefined): ServeError =>
      read().models.has(name) ? locked(name, identity) : notFound(name)
    return new AccessBackend({ backend, grants, caller, refuse, hasControl: false, log })
  }
}

function toGrant(
  models: readonly string[],
  identity: string | undefined,
  meter?: Grant['meter'],
): Grant {
  return { identity, models: new Set(models), mayControl: false, meter }
}

/** Tells the identities of all routes apart. */
function meterKey({ models }: EdgeRoute, { name }: EdgeIdentity): string {
  return JSON.stringify([name, ...models])
}

/** Makes the error for a model of the host that other callers reach. */
function locked(name: string, identity: string | undefined): ServeError {
  if (identity !== undefined) return denied(name, identity)
  const text = `model '${name}' wants a bearer token, got none`
  return new ServeError('UNAUTHENTICATED', text, { details: { model: name } })
}

function notFound(name: string): ServeError {
  const text = `Request for unknown model: '${name}' is not found`
  return new ServeError('MODEL_NOT_FOUND', text, { details: { model: name } })
}

/** Returns the name of the host that the client called, without a port. */
function hostOf({ headers }: Caller): string {
  const { [':authority']: authority, host } = headers
  const written = String(authority ?? host ?? '').slice(0, 2 * LONGEST_HOST)
  return written.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase()
}
