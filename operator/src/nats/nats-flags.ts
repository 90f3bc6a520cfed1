import type { FlagTable, FlagValues } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { NatsServers } from './nats-tenancy.ts'
import type { AccountLimits } from './server-config.ts'
import { PREFIX_PATTERN } from './tenant-subjects.ts'

/** The flags about NATS, between routers and steps. */
export const NATS_FLAGS = {
  nats: {
    type: 'string',
    repeatable: true,
    description:
      'Address of a NATS server for routers and steps, nats://HOST:PORT or tls://HOST:PORT. Repeat the flag for more servers of the cluster.',
  },
  'nats-prefix': {
    type: 'string',
    default: 'tutti',
    description:
      'First part of every subject. Installations with different prefixes can share servers.',
  },
  'nats-credential-lifetime': {
    type: 'int',
    min: 10,
    max: 31_536_000,
    default: 86_400,
    unit: 's',
    description: "Lifetime of a namespace's credential. The operator renews it after half of that.",
  },
  'nats-cluster-host': {
    type: 'string',
    repeatable: true,
    description:
      "HOST:PORT of the cluster port of one of the chart's servers, if they are a cluster. Repeat the flag for each.",
  },
  'nats-accounts': {
    type: 'bool',
    default: false,
    description:
      "Each namespace has an account of its own on the chart's servers, which the operator connects to. --nats is then tls://HOST:PORT.",
  },
  'nats-connections-per-namespace': {
    type: 'int',
    min: 4,
    max: 65_536,
    default: 96,
    description:
      'Connections of a namespace to all servers, with --nats-accounts. Each pod of a step or router has two.',
  },
  'nats-subscriptions-per-namespace': {
    type: 'int',
    min: 12,
    max: 1_000_000,
    default: 1024,
    description:
      'Subscriptions of a namespace, with --nats-accounts. Each pod of a step or router has six.',
  },
  'nats-former': {
    type: 'string',
    repeatable: true,
    description:
      'Address of a NATS server of the release before, nats://HOST:PORT, which routers and steps also use, with --nats-accounts. Repeat the flag for more servers.',
  },
  'nats-former-cluster-host': {
    type: 'string',
    repeatable: true,
    description:
      'HOST:PORT of the cluster port of one of these servers, if they are a cluster. Repeat the flag for each.',
  },
  'nats-issuer-secret': {
    type: 'string',
    description:
      "Secret of the operator's namespace with account.pub and signing.nk, for external servers.",
  },
  'nats-private-authority': {
    type: 'bool',
    default: false,
    description:
      'The Secret also has ca.crt, the only authority that routers and steps trust for the servers.',
  },
} as const satisfies FlagTable

export type NatsFlags = FlagValues<typeof NATS_FLAGS>

/** The flags, read. */
export interface NatsSettings {
  /** At least one. */
  readonly urls: readonly string[]
  readonly prefix: string
  readonly lifetimeMs: number
  readonly servers: NatsServers | AccountServers
  /** The chart's servers of the release before, beside those with accounts. */
  readonly former?: FormerServers
}

/** The chart's, with an account for each namespace. */
export interface AccountServers {
  readonly kind: 'accounts'
  /** As NatsServers. */
  readonly clusterHosts: readonly string[]
  readonly limits: AccountLimits
}

/** The chart's, with one account for all. */
export interface FormerServers {
  readonly urls: readonly string[]
  readonly clusterHosts: readonly string[]
}

/** @throws ServeError FLAG_INVALID that names the flag, what came and what was wanted. */
export function toNatsSettings(flags: NatsFlags): NatsSettings {
  const { nats: urls, 'nats-prefix': prefix, 'nats-cluster-host': clusterHosts } = flags
  if (urls.length === 0) throw refusal('nats', 'got none, want nats://HOST:PORT')
  refuseOthers(
    'nats',
    urls,
    /^(?:nats|tls):\/\/[^\s/@]+:\d+$/,
    'nats://HOST:PORT or tls://HOST:PORT',
  )
  refuseOthers('nats-prefix', [prefix], PREFIX_PATTERN, 'letters, digits, - and _, 63 at most')
  refuseOthers('nats-cluster-host', clusterHosts, CLUSTER_HOST, 'HOST:PORT')
  const lifetimeMs = flags['nats-credential-lifetime'] * 1000
  const former = toFormer(flags)
  const servers = flags['nats-accounts'] ? toAccountServers(flags) : toServers(flags)
  return { urls, prefix, lifetimeMs, servers, ...(former && { former }) }
}

const CLUSTER_HOST = /^[^\s/@:]+:\d+$/

function toAccountServers(flags: NatsFlags): AccountServers {
  refuseOthers(
    'nats',
    flags.nats,
    /^tls:\/\/[^\s/@:]+:\d+$/,
    'tls://HOST:PORT with --nats-accounts',
  )
  if (flags['nats-issuer-secret'] !== undefined) {
    throw refusal('nats-accounts', 'got it with --nats-issuer-secret, want it for our own servers')
  }
  return {
    kind: 'accounts',
    clusterHosts: flags['nats-cluster-host'],
    limits: {
      connections: flags['nats-connections-per-namespace'],
      subscriptions: flags['nats-subscriptions-per-namespace'],
    },
  }
}

function toFormer(flags: NatsFlags): FormerServers | undefined {
  const { 'nats-former': urls, 'nats-former-cluster-host': clusterHosts } = flags
  refuseOthers('nats-former', urls, /^nats:\/\/[^\s/@]+:\d+$/, 'nats://HOST:PORT')
  refuseOthers('nats-former-cluster-host', clusterHosts, CLUSTER_HOST, 'HOST:PORT')
  if (urls.length === 0) {
    if (clusterHosts.length === 0) return undefined
    throw refusal('nats-former-cluster-host', 'got it without --nats-former, want both')
  }
  if (flags['nats-accounts']) return { urls, clusterHosts }
  throw refusal('nats-former', 'got it without --nats-accounts, want both')
}

function toServers(flags: NatsFlags): NatsServers {
  const { 'nats-cluster-host': clusterHosts, 'nats-issuer-secret': issuerSecret } = flags
  const hasAuthorities = flags['nats-private-authority']
  if (issuerSecret === undefined) {
    if (!hasAuthorities) return { kind: 'own', clusterHosts }
    throw refusal(
      'nats-private-authority',
      'got it without --nats-issuer-secret, want the Secret that has it',
    )
  }
  if (clusterHosts.length === 0) return { kind: 'external', issuerSecret, hasAuthorities }
  throw refusal(
    'nats-cluster-host',
    'got it with --nats-issuer-secret, want it for our own servers',
  )
}

function refuseOthers(
  name: keyof NatsFlags,
  texts: readonly string[],
  pattern: RegExp,
  wanted: string,
): void {
  const odd = texts.find((text) => !pattern.test(text))
  if (odd !== undefined) throw refusal(name, `got ${JSON.stringify(odd)}, want ${wanted}`)
}

function refusal(name: keyof NatsFlags, what: string): ServeError {
  return new ServeError('FLAG_INVALID', `--${name}: ${what}`, { details: { field: `--${name}` } })
}
