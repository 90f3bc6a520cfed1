import { AccountTenancy } from '../../nats/account-tenancy.ts'
import { ExternalTenancy } from '../../nats/external-tenancy.ts'
import { toNatsSettings } from '../../nats/nats-flags.ts'
import { createServerMetrics } from '../../nats/server-metrics.ts'
import { NATS_SECRETS } from '../../nats/tenancy-secrets.ts'
import { referenceSource } from '../../runtime/sources.ts'
import type { Caches } from '../caches.ts'
import type { ControllerContext, ControllerSet } from '../context.ts'
import type { Tenancy } from '../router/tenant-credential.ts'
import { createNatsServersController, SERVERS_KEY } from './nats-servers-controller.ts'

export interface TenancyOptions extends ControllerContext {
  readonly caches: Pick<Caches, 'secrets'>
  /** Callback for another signing key; see NatsServersOptions. */
  readonly onIssuerChanged: () => void
}

/**
 * Makes the tenancy that gives namespaces their credentials, and the controller of the NATS servers. The flags decide between the
 * chart's servers and external ones.
 *
 * @throws ServeError FLAG_INVALID
 */
export function createTenancy(o: TenancyOptions): ControllerSet & { readonly tenancy: Tenancy } {
  const { servers, ...settings } = toNatsSettings(o.flags)
  const common = { ...o, ...settings }
  if (servers.kind === 'external') {
    const tenancy = new ExternalTenancy({ ...common, ...servers })
    return { tenancy, ...createNatsServersController({ ...common, tenancy }) }
  }
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
    tenancy,
    sources: [
      referenceSource({
        cache: secrets,
        toKeys: ({ metadata }) => (metadata.name === NATS_SECRETS.credentials ? [SERVERS_KEY] : []),
      }),
    ],
  })
  return { tenancy, ...controller }
}
