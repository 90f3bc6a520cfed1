import { type Engine, type Engines, LentMemory } from '@tutti/backends'
import {
  type Clock,
  logServing,
  type Running,
  type StartOptions,
  systemClock,
  toDrainMs,
} from '@tutti/chassis'
import { openConsole } from '@tutti/console'
import { checkAnswered, openServers } from '@tutti/server'
import { AccessFile, openTraces, readHeaderRules } from '@tutti/serving'
import type { BackendConfig } from '@tutti/step'
import { readTraceFlags } from '@tutti/telemetry'
import manifest from '../../package.json' with { type: 'json' }
import { readControlGuard } from './control-flags.ts'
import { type ModelServer, openModelServer } from './model-server.ts'
import type { OpenedManifests } from './open-manifests.ts'
import type { SERVE_FLAGS } from './serve-flags.ts'

export interface ServeOptions extends Omit<StartOptions<typeof SERVE_FLAGS>, 'signal'> {
  /** As that of StartOptions; never if absent. */
  readonly signal?: AbortSignal
  readonly clock?: Clock
  /** Served beside the repositories; closed with the server. */
  readonly manifests?: OpenedManifests
  /** Those of this build unless a test has its own. */
  readonly engines?: Engines | readonly Engine[]
  /** Those of `--backend-config` if absent. */
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
  const { flags, log, health } = o
  const clock = o.clock ?? systemClock
  const guardControl = readControlGuard(flags)
  const headerRules = readHeaderRules(flags)
  const trace = readTraceFlags(flags)
  const traces = openTraces(trace, { clock, log })
  const access = await AccessFile.open({ flags, clock, log })
  const server = await openModelServer({ ...o, clock })
  const memory = LentMemory.open(flags['max-inflight-bytes'])
  const { router, backend, step, metrics } = server
  try {
    const servers = await openServers({
      flags,
      backend,
      guardControl,
      decorators: traces === undefined ? [headerRules] : [traces.decorate, headerRules],
      traceSettings: trace.mode === 'triton' ? trace.settings : undefined,
      identities: access?.identities,
      page: consoleOf(flags, server, clock),
      memory,
      metrics,
      health,
      clock,
      log,
    })
    const { failedModels } = server
    const failed = failedModels > 0 ? { failedModels } : {}
    logServing({ log, clock, fields: { ...servers.ports, ...failed }, causes: () => [] })
    return {
      stopAccepting: () => {
        servers.stopAccepting()
        router.stop()
        server.stop()
      },
      drain: async () => {
        const isAnswered = await servers.drain({ timeoutMs: toDrainMs(flags) })
        await step.drain()
        checkAnswered(isAnswered)
      },
      close: async () => {
        o.onClose?.()
        access?.close()
        await servers.close()
        await server.close()
        // Not waited for: what is lent may have no end.
        void memory?.close()
        traces?.close()
      },
      isBusy: () => step.isBusy,
    }
  } catch (error) {
    access?.close()
    await server.close()
    void memory?.close()
    throw error
  }
}

function consoleOf(flags: ServeOptions['flags'], { backend }: ModelServer, clock: Clock) {
  const { version } = manifest
  return openConsole({ flags, source: backend, version, scope: 'one process', clock })
}
