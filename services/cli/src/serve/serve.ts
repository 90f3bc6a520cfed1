import { randomBytes } from 'node:crypto'
import { createEngines } from '@tutti/backends'
import {
  type Clock,
  createTracing,
  type FlagValues,
  type Running,
  type StartOptions,
  systemClock,
  toDrainMs,
  toTracingOptions,
} from '@tutti/chassis'
import { openDoors, refuseFailures, ServerMetrics } from '@tutti/front-door'
import { Router, readEnsembles } from '@tutti/router'
import { openStep, readBackendConfig, type Step, scanModels } from '@tutti/step'
import { LocalBearer, StepDirectory } from '@tutti/transport'
import { SERVING } from '../log-events.ts'
import type { SERVE_FLAGS } from './serve-flags.ts'

export type ServeFlags = FlagValues<typeof SERVE_FLAGS>

export interface ServeOptions extends Omit<StartOptions<typeof SERVE_FLAGS>, 'signal'> {
  readonly clock?: Clock
}

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
  const { flags, log, health } = o
  const clock = o.clock ?? systemClock
  const served = await openRouter(o, clock)
  const { router, step, metrics } = served
  try {
    if (flags['exit-on-error']) refuseFailures(router)
    const doors = await openDoors({ flags, backend: router, metrics, health, clock, log })
    log.info(SERVING, { ...doors.ports })
    return {
      stopAccepting: () => {
        doors.stopAccepting()
        router.stop()
      },
      drain: async () => {
        await doors.drain({ timeoutMs: toDrainMs(flags) })
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
