import { ACCOUNT_SECRETS, AccountTenancy } from '../../nats/account-tenancy.ts'
import { toNatsSettings } from '../../nats/nats-flags.ts'
import { type NatsServers, NatsTenancy } from '../../nats/nats-tenancy.ts'
import { createServerMetrics } from '../../nats/server-metrics.ts'
import { referenceSource } from '../../runtime/sources.ts'
import type { Caches } from '../caches.ts'
import type { ControllerContext, ControllerSet } from '../context.ts'
import type { Tenancy } from '../router/tenant-credential.ts'
import { createNatsServersController, SERVERS_KEY } from './nats-servers-controller.ts'

export interface TenancyOptions extends ControllerContext {
  readonly caches: Pick<Caches, 'secrets'>
  /** See NatsServersOptions. */
  readonly onIssuerChanged: () => void
}

/** Makes what gives namespaces their credentials, and the controllers that keep the servers, as the flags say. */
export function createTenancy(o: TenancyOptions): ControllerSet & { readonly tenancy: Tenancy } {
  const { servers, former, ...settings } = toNatsSettings(o.flags)
  const common = { ...o, ...settings }
  const shared = (name: 'nats-servers' | 'nats-former-servers', of: NatsServers) => {
    const tenancy = new NatsTenancy({ ...common, servers: of })
    return { tenancy, ...createNatsServersController({ ...common, name, tenancy }) }
  }
  if (servers.kind !== 'accounts') return shared('nats-servers', servers)
  const { secrets } = o.caches
  const tenancy = new AccountTenancy({
    ...common,
    ...servers,
    secrets: () => secrets.list(),
    onLost: () => controller.look(),
  })
  createServerMetrics(o.scrapes, () => tenancy.readServers())
  const controller = createNatsServersController({
    ...common,
    name: 'nats-servers',
    tenancy,
    sources: [
      referenceSource({
        cache: secrets,
        toKeys: ({ metadata }) =>
          metadata.name === ACCOUNT_SECRETS.credentials ? [SERVERS_KEY] : [],
      }),
    ],
  })
  if (former === undefined) return { tenancy, ...controller }
  const before = shared('nats-former-servers', { kind: 'own', clusterHosts: former.clusterHosts })
  return {
    tenancy: both(tenancy, before.tenancy),
    caches: [...controller.caches, ...before.caches],
    controllers: [...controller.controllers, ...before.controllers],
  }
}

/** Gives each namespace both credentials. */
function both(one: Tenancy, other: Tenancy): Tenancy {
  return {
    ensureTenant: async (namespace, o) => {
      const now = await one.ensureTenant(namespace, o)
      const before = await other.ensureTenant(namespace, o)
      return { renewAtMs: Math.min(now.renewAtMs, before.renewAtMs) }
    },
  }
}
