import { randomBytes } from 'node:crypto'
import { createEngines } from '@tutti/backends'
import {
  type Clock,
  createTracing,
  type FlagValues,
  type Logger,
  type Running,
  systemClock,
} from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { openDoors, ServerMetrics } from '@tutti/front-door'
import { scanRepositories } from '@tutti/repository'
import { Router, readEnsembles } from '@tutti/router'
import { openStep, type Step } from '@tutti/step'
import { LocalBearer, StepDirectory } from '@tutti/transport'
import { SERVING } from '../log-events.ts'
import type { Settings } from '../settings.ts'
import { toTracingOptions } from '../tracing-options.ts'
import { readBackendConfig } from './backend-config.ts'
import type { SERVE_FLAGS } from './serve-flags.ts'

export type ServeFlags = FlagValues<typeof SERVE_FLAGS>

export interface ServeOptions {
  readonly flags: ServeFlags
  readonly settings: Settings
  readonly log: Logger
  readonly clock?: Clock
}

/** Of the grace period, for requests in flight; the rest is for telling those that are left that the server stops. */
const DRAIN_SHARE = 0.9

interface Served {
  readonly step: Step
  readonly router: Router
  readonly metrics: ServerMetrics
  close(): Promise<void>
}

/**
 * Serves model repositories in one process: the step with its engines, the router over it, and the front doors.
 *
 * @throws ServeError if the repositories cannot be read, a port is taken, or, with `--exit-on-error`, a model fails.
 */
export async function startServe(o: ServeOptions): Promise<Running> {
  const { flags, log } = o
  const clock = o.clock ?? systemClock
  const served = await openRouter(o, clock)
  const { router, step, metrics } = served
  try {
    if (flags['exit-on-error']) refuseFailures(router)
    const doors = await openDoors({ flags, backend: router, metrics, clock, log })
    log.info(SERVING, { ...doors.ports })
    return {
      stopAccepting: () => {
        doors.stopAccepting()
        router.stop()
      },
      drain: async () => {
        await doors.drain({ timeoutMs: flags['exit-timeout-secs'] * 1000 * DRAIN_SHARE })
        await step.drain()
      },
      close: async () => {
        await doors.close()
        await served.close()
      },
    }
  } catch (error) {
    await served.close()
    throw error
  }
}

/** Everything behind the doors: one step and one router, with the bearer between them. */
async function openRouter({ flags, settings, log }: ServeOptions, clock: Clock): Promise<Served> {
  const models = await scanModels(flags)
  const metrics = new ServerMetrics()
  const tracing = createTracing(toTracingOptions(settings))
  const replica = randomBytes(5).toString('hex')
  const step = await openStep({
    replica,
    models,
    engines: createEngines({ log }),
    autoComplete: !flags['disable-auto-complete-config'],
    defaultMaxBatchSize: readBackendConfig(flags['backend-config']).defaultMaxBatchSize,
    loadParallelism: flags['model-load-thread-count'],
    maxQueuedRequests: flags['max-queue-size'],
    clock,
    log,
    metrics,
  })
  const bearer = new LocalBearer()
  const stopBearer = bearer.serve(replica, step.handle)
  const close = async (): Promise<void> => {
    stopBearer()
    await step.close()
    await tracing.shutdown()
  }
  try {
    const router = new Router({
      name: `router-${replica}`,
      ensembles: await readEnsembles(models),
      directory: new StepDirectory(),
      bearer,
      strictReadiness: flags['strict-readiness'],
      clock,
      log,
      tracing,
      metrics,
    })
    await router.addStep(step.control)
    return { step, router, metrics, close }
  } catch (error) {
    await close()
    throw error
  }
}

async function scanModels(flags: ServeFlags): ReturnType<typeof scanRepositories> {
  const configName = flags['model-config-name']
  return await scanRepositories(
    flags['model-repository'],
    configName === undefined ? {} : { configName },
  )
}

/** Triton's `--exit-on-error`: nothing is served if anything failed. */
function refuseFailures(router: Router): void {
  const failed = router.repositoryIndex(false).filter((entry) => entry.state !== 'READY')
  if (failed.length === 0) return
  const list = failed.map(({ name, version, reason }) => `${name} ${version}: ${reason}`)
  throw new ServeError('MODEL_LOAD_FAILED', `failed to load all models: ${list.join('; ')}`)
}
