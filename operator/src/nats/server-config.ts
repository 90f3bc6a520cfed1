import { signClaims } from './nkey.ts'
import type { TenancyKeys } from './tenancy-keys.ts'

/** Where the parts of a server's configuration are, as keys of the Secret and so as files beside the server's own. */
export const TENANCY_FILE = 'tenancy.conf'

/**
 * The file that the servers of a cluster of that size include in their block `cluster`. The size is in the name, so that a
 * server which is started for a larger cluster waits for the file instead of running alone.
 */
export function clusterFile(servers: number): string {
  return `cluster-${servers}.conf`
}

/**
 * Whom servers let in: users of the one account that a signing key of it has signed, as their JWTs permit. Accounts are in
 * the configuration itself (memory resolver), so servers need no storage and no resolver.
 *
 * Equal keys give equal text.
 */
export function buildTenancyConfig(keys: TenancyKeys): string {
  const accounts = {
    [keys.account]: accountJwt(keys, keys.account, 'tutti', signingKeysOf(keys)),
    [keys.systemAccount]: accountJwt(keys, keys.systemAccount, 'system', []),
  }
  return [
    `operator: ${sign(keys, keys.operator.publicKey, 'tutti', { type: 'operator' })}`,
    `system_account: ${keys.systemAccount}`,
    'resolver: MEMORY',
    // The configuration's syntax takes JSON.
    `resolver_preload: ${JSON.stringify(accounts, null, 2)}`,
    '',
  ].join('\n')
}

/**
 * The part of the block `cluster`: how servers let one another in, and where they are.
 *
 * @param hosts - `host:port` of each server's cluster port.
 */
export function buildClusterConfig(keys: TenancyKeys, hosts: readonly string[]): string {
  const user = 'route'
  const authorization = { user, password: keys.routePassword }
  const routes = hosts.map((host) => `nats-route://${user}:${keys.routePassword}@${host}`)
  return [
    `authorization: ${JSON.stringify(authorization)}`,
    `routes: ${JSON.stringify(routes, null, 2)}`,
    '',
  ].join('\n')
}

function signingKeysOf(keys: TenancyKeys): readonly string[] {
  const { current, next, previous } = keys.signing
  return [current, next, previous].flatMap((key) => (key === undefined ? [] : [key.publicKey]))
}

/** Only users that were given subjects reach them; no leaf node, import or export leads out of the account. */
const ACCOUNT = {
  limits: {
    subs: -1,
    data: -1,
    payload: -1,
    conn: -1,
    imports: 0,
    exports: 0,
    leaf: 0,
    wildcards: false,
    disallow_bearer: true,
  },
  default_permissions: { pub: { deny: ['>'] }, sub: { deny: ['>'] } },
} as const

function accountJwt(
  keys: TenancyKeys,
  account: string,
  name: string,
  signingKeys: readonly string[],
): string {
  const signing = signingKeys.length === 0 ? {} : { signing_keys: signingKeys }
  return sign(keys, account, name, { ...ACCOUNT, ...signing, type: 'account' })
}

function sign(
  keys: TenancyKeys,
  subject: string,
  name: string,
  nats: Readonly<Record<string, unknown>> & { readonly type: 'operator' | 'account' },
): string {
  // Without the time of signing, equal keys give equal text, and a restart changes nothing. Servers do not look at it here.
  return signClaims(keys.operator, { sub: subject, name, iat: 1, nats: { ...nats, version: 2 } })
}
