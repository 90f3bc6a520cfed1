import { setTimeout as sleep } from 'node:timers/promises'
import { createHealth, parseFlags, silentLogger } from '@tutti/chassis'
import { type ApiServer, startHttpFaultProxy } from '@tutti/kube/testing'
import { loadOperatorConfig } from '../config.ts'
import { createControllers } from '../controllers/index.ts'
import { OPERATOR_FLAGS } from '../operator-flags.ts'
import { startOperator } from '../start-operator.ts'
import type { CaseOperatorOptions } from './case-operator.ts'
import { ensureIssuer, ISSUER_FLAGS } from './nats-issuer.ts'
import { RestWatch } from './rest-watch.ts'

export interface VersionOptions
  extends Pick<CaseOperatorOptions, 'system' | 'podPort' | 'direct' | 'namespace'> {
  /** Name of the operator's pod. */
  readonly name: string
  /** Further flags of this operator. */
  readonly flags?: readonly string[]
}

/**
 * Starts the operator with an election, as a pod of its Deployment does. It resolves when the caches have synced, whether this
 * operator leads or not. The caller stops it.
 */
export async function startVersion(server: ApiServer, { name, system, ...o }: VersionOptions) {
  await ensureIssuer(server.plain, system)
  const proxy = await startHttpFaultProxy(server)
  const { values: flags } = parseFlags(OPERATOR_FLAGS, [
    '--health-address=127.0.0.1',
    '--health-port=0',
    '--metrics-address=127.0.0.1',
    '--metrics-port=0',
    ...ISSUER_FLAGS,
    '--router-replicas=1',
    // Longer than a machine that is busy may be late.
    '--leader-elect-lease-duration=90',
    '--leader-elect-renew-deadline=80',
    '--leader-elect-retry-period=1',
    ...(o.namespace === undefined ? [] : [`--watch-namespace=${o.namespace}`]),
    ...(o.flags ?? []),
  ])
  const config = loadOperatorConfig({
    POD_NAME: name,
    POD_NAMESPACE: system,
    KUBERNETES_SERVICE_HOST: proxy.url.hostname,
    KUBERNETES_SERVICE_PORT: proxy.url.port,
    TUTTI_SERVICE_ACCOUNT_DIR: await server.createServiceAccountDir(system, 'operator'),
  })
  let rest: RestWatch | undefined
  const running = await startOperator({
    flags,
    config,
    log: silentLogger,
    health: createHealth(),
    signal: new AbortController().signal,
    exit: () => {
      throw new Error(`the operator "${name}" has lost its lease`)
    },
    createControllers: (context) => {
      const { client, metrics } = context
      rest = new RestWatch({ client, direct: o.direct, metrics, writes: () => proxy.writes.length })
      const { clock, openReflector, metrics: watched } = rest
      const watch = { clock, openReflector, metrics: watched }
      return createControllers({ ...context, ...watch, podPort: o.podPort })
    },
  })
  const end = async (): Promise<void> => {
    await running.stopAccepting()
    await running.drain({ signal: new AbortController().signal })
    await running.close()
    await proxy.close()
  }
  let ending: Promise<void> | undefined
  return {
    proxy,
    atRest: async (): Promise<void> => await rest?.atRest(),
    /** Resolves when the operator has the lease and its first reconcile has ended. */
    leads: async (): Promise<void> => {
      await server.plain.until(
        `/apis/coordination.k8s.io/v1/namespaces/${system}/leases/tutti-operator`,
        (lease) => lease?.['spec'].holderIdentity?.startsWith(`${name}_`),
      )
      // It hears of its lease later than the server does.
      while (rest?.passes.length === 0) await sleep(20)
    },
    /** Stops the operator as SIGTERM does: running reconciles end, then it gives up the lease. Further calls have no effect. */
    stop: (): Promise<void> => (ending ??= end()),
  }
}
