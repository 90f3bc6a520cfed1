import { silentLogger, systemClock } from '@tutti/chassis'
import { type ClusterAccess, createClient, createReflector, createTransport } from '@tutti/kube'
import type { OpenReflector } from '../runtime/cache.ts'
import type { ManagedCache, ManagedController } from '../runtime/manager.ts'

/** The clock and the log of the operator's parts in tests. */
export const AROUND = { clock: systemClock, log: silentLogger }

/** Opens a client with its own connections, and a function that opens reflectors over it. The caller closes it. */
export function openClient(access: ClusterAccess) {
  const transport = createTransport(access, { ...AROUND, userAgent: 'test' })
  const client = createClient(transport)
  const openReflector: OpenReflector = (o) => createReflector({ ...o, client })
  return { client, openReflector, close: () => transport.close() }
}

type Caches = readonly Pick<ManagedCache, 'start' | 'synced' | 'close'>[]

/** Starts caches and resolves when they have synced. */
export async function startCaches(caches: Caches): Promise<void> {
  for (const cache of caches) cache.start()
  await Promise.all(caches.map((cache) => cache.synced))
}

export async function closeCaches(caches: Caches): Promise<void> {
  await Promise.all(caches.map((cache) => cache.close()))
}

/** Stops controllers, aborts their reconciles and waits until these have ended. */
export async function endControllers(controllers: readonly ManagedController[]): Promise<void> {
  for (const controller of controllers) controller.stop()
  for (const controller of controllers) controller.abort()
  await Promise.all(controllers.map((controller) => controller.drained()))
}
