import type { Engine, Engines } from '@tutti/backends'
import type { Clock, Running, StartOptions } from '@tutti/chassis'
import { openConsole } from '@tutti/console'
import { openClientRules, type ProcessBase, type ServedContent, serveProcess } from '@tutti/server'
import { readHeaderRules } from '@tutti/serving'
import { type BackendConfig, openRequestMemory } from '@tutti/step'
import manifest from '../../package.json' with { type: 'json' }
import { readControlGuard } from './control-flags.ts'
import { openModelServer } from './model-server.ts'
import type { OpenedManifests } from './open-manifests.ts'
import type { SERVE_FLAGS } from './serve-flags.ts'

export interface ServeOptions extends Omit<StartOptions<typeof SERVE_FLAGS>, 'signal'> {
  /** Signal as in StartOptions; never aborts if absent. */
  readonly signal?: AbortSignal
  readonly clock?: Clock
  /** Manifests to serve beside the repositories; closed with the server. */
  readonly manifests?: OpenedManifests
  /** Engines of a test; those of this build if absent. */
  readonly engines?: Engines | readonly Engine[]
  /** Settings of backends; those of `--backend-config` if absent. */
  readonly backends?: BackendConfig
  /** Called when the server closes. */
  readonly onClose?: () => void
}

/**
 * Serves model repositories in one process: the step with its engines, the router over it, and the servers.
 *
 * @throws ServeError if the repositories cannot be read, a port is taken, or, with `--exit-on-error`, a model fails.
 */
export async function startServe(o: ServeOptions): Promise<Running> {
  const pinnedPoolBytes = o.flags['pinned-memory-pool-byte-size']
  const close = async (): Promise<void> => await o.manifests?.close()
  return await serveProcess({ ...o, pinnedPoolBytes, close }, (shared) => composeServe(o, shared))
}

async function composeServe(o: ServeOptions, shared: ProcessBase): Promise<ServedContent> {
  const { flags } = o
  const { clock } = shared
  const guardControl = readControlGuard(flags)
  const headerRules = readHeaderRules(flags)
  const rules = await openClientRules(flags, { ...shared, headerRules, offersTraces: true })
  const { backend, router, step, failedModels } = await openModelServer(shared, o)
  const { version } = manifest
  return {
    backend,
    stop: () => router.stop(),
    models: step,
    guardControl,
    ...rules,
    page: openConsole({ flags, source: backend, version, scope: 'one process', clock }),
    memory: openRequestMemory(flags['max-inflight-bytes'], shared),
    ...(failedModels > 0 && { fields: { failedModels } }),
  }
}
