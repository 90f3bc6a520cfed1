import { type AccountKeys, type AccountOwner, signersOf, toAccountIssuer } from './account-keys.ts'
import { signClaims } from './nkey.ts'

/** Where the parts of a server's configuration are, as keys of the Secret and so as files beside the server's own. */
export const TENANCY_FILE = 'tenancy.conf'

/**
 * The file that the servers of a cluster of that size include in their block `cluster`. The size is in the name, so that a
 * server which is started for a larger cluster waits for the file instead of running alone.
 */
export function clusterFile(servers: number): string {
  return `cluster-${servers}.conf`
}

/** The most that one namespace may use, of all servers together. */
export interface AccountLimits {
  readonly connections: number
  readonly subscriptions: number
}

/** The account of a namespace, as servers know it. */
export interface TenantAccount {
  /** `A...` */
  readonly account: string
  readonly jwt: string
}

/**
 * Makes the account of a namespace: users that its signing keys have signed reach one another, and nothing leads in or out. Equal
 * keys and times give equal text.
 *
 * @param issuedAtS - seconds since the epoch. Of two, servers of a cluster keep the later one.
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
 * Whom servers let in that learn accounts from the operator while they run: at the start that is the operator alone. The resolver is
 * in their own configuration, because they keep accounts in a folder of theirs.
 */
export function buildAccountsConfig(keys: AccountKeys): string {
  const { publicKey } = keys.system
  const system = accountJwt(keys, { account: publicKey, name: 'system' })
  return [...operatorLines(keys, publicKey), ...preloadLines({ [publicKey]: system })].join('\n')
}

/** The operator's word that servers forget these accounts. */
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
 * The part of the block `cluster`: how servers let one another in, and where they are.
 *
 * @param hosts - `host:port` of each server's cluster port.
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
