import type { FlagTable, FlagValues } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { ExternalServers } from './external-tenancy.ts'
import type { AccountLimits } from './server-config.ts'
import { PREFIX_PATTERN } from './tenant-subjects.ts'

/** The operator's flags about NATS. */
export const NATS_FLAGS = {
  nats: {
    type: 'string',
    repeatable: true,
    description:
      'Address of a NATS server for routers and steps: tls://HOST:PORT, or nats://HOST:PORT of external servers. Repeat the flag for more servers of the cluster.',
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
  'nats-connections-per-namespace': {
    type: 'int',
    min: 4,
    max: 65_536,
    default: 96,
    description:
      "Connections of a namespace to all of the chart's servers. Each pod of a step or router has two.",
  },
  'nats-subscriptions-per-namespace': {
    type: 'int',
    min: 12,
    max: 1_000_000,
    default: 1024,
    description:
      "Subscriptions of a namespace on the chart's servers. Each pod of a step or router has five.",
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

/** The settings that follow from the NATS flags. */
export interface NatsSettings {
  /** Addresses of the servers; at least one. */
  readonly urls: readonly string[]
  readonly prefix: string
  readonly lifetimeMs: number
  readonly servers: ExternalServers | AccountServers
}

/** The chart's NATS servers, on which each namespace has its own account. */
export interface AccountServers {
  readonly kind: 'accounts'
  /** Cluster ports of the servers, `host:port`; empty if they are no cluster. */
  readonly clusterHosts: readonly string[]
  readonly limits: AccountLimits
}

/** Checks the NATS flags and derives the settings. @throws ServeError FLAG_INVALID that names the flag and the wanted form. */
export function toNatsSettings(flags: NatsFlags): NatsSettings {
  const { nats: urls, 'nats-prefix': prefix, 'nats-cluster-host': clusterHosts } = flags
  if (urls.length === 0) throw refusal('nats', 'got none, want tls://HOST:PORT')
  refuseOthers(
    'nats',
    urls,
    /^(?:nats|tls):\/\/[^\s/@]+:\d+$/,
    'nats://HOST:PORT or tls://HOST:PORT',
  )
  refuseOthers('nats-prefix', [prefix], PREFIX_PATTERN, 'letters, digits, - and _, 63 at most')
  refuseOthers('nats-cluster-host', clusterHosts, CLUSTER_HOST, 'HOST:PORT')
  const lifetimeMs = flags['nats-credential-lifetime'] * 1000
  const servers = toServers(flags)
  return { urls, prefix, lifetimeMs, servers }
}

const CLUSTER_HOST = /^[^\s/@:]+:\d+$/

function toServers(flags: NatsFlags): NatsSettings['servers'] {
  const { 'nats-cluster-host': clusterHosts, 'nats-issuer-secret': issuerSecret } = flags
  const hasAuthorities = flags['nats-private-authority']
  if (issuerSecret === undefined) return toAccountServers(flags)
  if (clusterHosts.length === 0) return { kind: 'external', issuerSecret, hasAuthorities }
  throw refusal(
    'nats-cluster-host',
    'got it with --nats-issuer-secret, want it for our own servers',
  )
}

function toAccountServers(flags: NatsFlags): AccountServers {
  if (flags['nats-private-authority']) {
    const want = 'want the Secret that has it'
    throw refusal('nats-private-authority', `got it without --nats-issuer-secret, ${want}`)
  }
  const want = 'tls://HOST:PORT without --nats-issuer-secret'
  refuseOthers('nats', flags.nats, /^tls:\/\/[^\s/@:]+:\d+$/, want)
  return {
    kind: 'accounts',
    clusterHosts: flags['nats-cluster-host'],
    limits: {
      connections: flags['nats-connections-per-namespace'],
      subscriptions: flags['nats-subscriptions-per-namespace'],
    },
  }
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
