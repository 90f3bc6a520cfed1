import { type AccountKeys, type AccountOwner, signersOf, toAccountIssuer } from './account-keys.ts'
import { signClaims } from './nkey.ts'

/** The file that servers include for operator and accounts. It is also its key in the servers' Secret. */
export const TENANCY_FILE = 'tenancy.conf'

/**
 * Returns the name of the file that servers of a cluster include in their block `cluster`. The name holds the number of servers,
 * so that a server of a cluster that grows waits for the new file instead of running alone.
 */
export function clusterFile(servers: number): string {
  return `cluster-${servers}.conf`
}

/** The limits of one namespace, over all servers together. */
export interface AccountLimits {
  readonly connections: number
  readonly subscriptions: number
}

/** The account of a namespace, as the servers receive it. */
export interface TenantAccount {
  /** Public key of the account, `A...`. */
  readonly account: string
  readonly jwt: string
}

/**
 * Builds the account of a namespace. Only users that its signing keys have signed may connect, and no message enters or leaves
 * the account. Equal keys and times give equal text.
 *
 * @param issuedAtS - seconds since the epoch. Servers of a cluster keep the account that was issued later.
 */
export function buildTenantAccount(
  keys: AccountKeys,
  owner: AccountOwner,
  { limits, issuedAtS }: { readonly limits: AccountLimits; readonly issuedAtS: number },
): TenantAccount {
  const { account } = toAccountIssuer(keys, owner)
  const name = `namespace ${owner.namespace}`
  const signers = signersOf(keys, owner)
  return { account, jwt: accountJwt(keys, { account, name, signers, limits, issuedAtS }) }
}

/**
 * Builds the file with which servers start. At first they let in only the operator, which then tells them the accounts of the
 * namespaces. The resolver is in the servers' own configuration, because each keeps accounts in its own folder.
 */
export function buildAccountsConfig(keys: AccountKeys): string {
  const { publicKey } = keys.system
  const system = accountJwt(keys, { account: publicKey, name: 'system' })
  return [...operatorLines(keys, publicKey), ...preloadLines({ [publicKey]: system })].join('\n')
}

/** Builds the signed request by which servers remove accounts. @param accounts - public keys. */
export function buildRemoval({ operator }: AccountKeys, accounts: readonly string[]): string {
  const nats = { accounts, type: 'generic', version: 2 } as const
  return signClaims(operator, { sub: operator.publicKey, name: 'remove', iat: NO_TIME, nats })
}

function operatorLines(keys: AccountKeys, systemAccount: string): readonly string[] {
  const nats = { type: 'operator', version: 2 } as const
  const claims = { sub: keys.operator.publicKey, name: 'tutti', iat: NO_TIME, nats }
  const operator = signClaims(keys.operator, claims)
  return [`operator: ${operator}`, `system_account: ${systemAccount}`]
}

function preloadLines(accounts: Readonly<Record<string, string>>): readonly string[] {
  // The configuration's syntax takes JSON.
  return [`resolver_preload: ${JSON.stringify(accounts, null, 2)}`, '']
}

/**
 * Builds the file for the block `cluster`: the password of the cluster and the routes to its servers.
 *
 * @param hosts - cluster ports of the servers, `host:port`.
 */
export function buildClusterConfig(
  keys: Pick<AccountKeys, 'routePassword'>,
  hosts: readonly string[],
): string {
  const user = 'route'
  const authorization = { user, password: keys.routePassword }
  const routes = hosts.map((host) => `nats-route://${user}:${keys.routePassword}@${host}`)
  return [
    `authorization: ${JSON.stringify(authorization)}`,
    `routes: ${JSON.stringify(routes, null, 2)}`,
    '',
  ].join('\n')
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

interface AccountSubject {
  readonly account: string
  readonly name: string
  readonly signers?: readonly string[]
  readonly limits?: AccountLimits
  readonly issuedAtS?: number
}

function accountJwt(keys: AccountKeys, o: AccountSubject): string {
  const { account, name, signers, limits, issuedAtS } = o
  const { connections: conn, subscriptions: subs } = limits ?? {
    connections: -1,
    subscriptions: -1,
  }
  const nats = {
    limits: { ...ACCOUNT.limits, conn, subs },
    default_permissions: ACCOUNT.default_permissions,
    ...(signers && { signing_keys: signers }),
    type: 'account',
    version: 2,
  } as const
  return signClaims(keys.operator, { sub: account, name, iat: issuedAtS ?? NO_TIME, nats })
}

/** Without the time of signing, equal keys give equal text, and a restart changes nothing. */
const NO_TIME = 1
