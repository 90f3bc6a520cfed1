import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { BackendSelector, InferenceBackend } from '../backend/inference-backend.ts'
import { AccessBackend } from './access-backend.ts'
import type { AccessCounts, AccessLog } from './access-log.ts'
import { CallerCredentials, type Grant, type Proof } from './credentials.ts'
import { type Quota, QuotaMeters } from './quota-meter.ts'

/** An identity of the access file, how callers prove it, and what it may do. */
export interface IdentityRule {
  readonly name: string
  /** SHA-256 of each of its bearer tokens, in hex. */
  readonly tokenSha256: readonly string[]
  /** Names in the certificates of its clients, as readClientCertificate gives them. */
  readonly certificates: readonly string[]
  /** Served names; `*` alone for all. */
  readonly models: readonly string[]
  /** Whether it may load and unload its models. */
  readonly control: boolean
  readonly quota?: Quota | undefined
}

/** Calls that everybody may make: whether the server lives and is ready, of which probes ask. */
const HEALTH: ReadonlySet<string | undefined> = new Set([
  '/v2/health/live',
  '/v2/health/ready',
  '/inference.GRPCInferenceService/ServerLive',
  '/inference.GRPCInferenceService/ServerReady',
  '/grpc.health.v1.Health/Check',
])

/** Calls that only control allows. They are refused before their messages, which may be large, are read. */
const CONTROL: ReadonlySet<string | undefined> = new Set([
  '/inference.GRPCInferenceService/RepositoryModelLoad',
  '/inference.GRPCInferenceService/RepositoryModelUnload',
])

const ALL = '*'

export interface AccessRulesSource {
  /** Function that returns the rules now: the same list as long as they have not changed. */
  readonly rules: () => readonly IdentityRule[]
  readonly counts: AccessCounts
  readonly clock: Clock
}

/** The rules of an access file, compiled. All listeners share one instance, so that an identity has one quota. */
export class AccessRules {
  readonly #source: AccessRulesSource
  readonly #meters: QuotaMeters
  #compiled: readonly IdentityRule[] | undefined
  #credentials: CallerCredentials

  constructor(o: AccessRulesSource) {
    this.#source = o
    this.#meters = new QuotaMeters(o.clock)
    this.#credentials = new CallerCredentials([], undefined, o.clock)
    this.#compile()
  }

  get credentials(): CallerCredentials {
    this.#compile()
    return this.#credentials
  }

  #compile(): void {
    const rules = this.#source.rules()
    if (rules === this.#compiled) return
    this.#compiled = rules
    this.#meters.replace(new Map(rules.map(({ name, quota }) => [name, quota])))
    this.#credentials = new CallerCredentials(
      rules.flatMap((rule) => this.#toProofs(rule)),
      undefined,
      this.#source.clock,
    )
    this.#source.counts.follow(
      'file',
      rules.map(({ name }) => name),
    )
  }

  #toProofs(rule: IdentityRule): (readonly [Proof, Grant])[] {
    const { name, tokenSha256, certificates, models, control } = rule
    const grant = {
      identity: name,
      models: models.includes(ALL) ? undefined : new Set(models),
      mayControl: control,
      meter: this.#meters.get(name),
    }
    return [
      ...tokenSha256.map((digest) => [{ tokenSha256: digest }, grant] as const),
      ...certificates.map((certificate) => [{ certificate }, grant] as const),
    ]
  }
}

/**
 * Creates a selector that gives callers the rights of the identity that they prove. Everybody may call health.
 *
 * @returns a selector that throws UNAUTHENTICATED for a caller that proves no identity, and ACCESS_DENIED for a load or unload
 * without control.
 */
export function createAccessSelector(o: {
  readonly backend: InferenceBackend
  readonly rules: AccessRules
  readonly log: AccessLog
}): BackendSelector {
  const { backend, rules, log } = o
  return (caller) => {
    if (HEALTH.has(caller.path)) return backend
    const grants = followGrants(
      () => rules.credentials,
      (credentials) => log.identify(caller, () => credentials.find(caller)),
    )
    const refuse = denied
    const access = new AccessBackend({ backend, grants, caller, refuse, hasControl: true, log })
    const { name, mayControl } = access.identity
    if (CONTROL.has(caller.path) && !mayControl) throw log.denied(caller, name)
    return access
  }
}

/**
 * Creates a function that returns a caller's grants under the rules of that moment, for a call that stays open.
 *
 * @param read - returns the rules now: the same object as long as they have not changed.
 * @param find - finds the caller's grants in the rules. @throws ServeError if there are none.
 */
export function followGrants<Rules>(
  read: () => Rules,
  find: (rules: Rules) => readonly Grant[],
): () => readonly Grant[] {
  let seen: Rules | undefined
  let grants: readonly Grant[] = []
  return () => {
    const rules = read()
    if (rules !== seen) grants = find(rules)
    seen = rules
    return grants
  }
}

/** Makes the error for a model that the caller may not call. It does not tell whether the model exists. */
export function denied(name: string, identity: string | undefined): ServeError {
  const text = `identity '${identity}' may not call model '${name}'`
  return new ServeError('ACCESS_DENIED', text, { details: { model: name } })
}
