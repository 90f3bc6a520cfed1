import { randomBytes } from 'node:crypto'
import { createEngines } from '@tutti/backends'
import {
  type Clock,
  createTracing,
  type Running,
  type StartOptions,
  systemClock,
  toDrainMs,
  toTracingOptions,
  withCauses,
} from '@tutti/chassis'
import { openDoors, openMetricsDoor, refuseFailures, ServerMetrics } from '@tutti/front-door'
import { openStepPeer, type StepPeer, toBrokerOptions } from '@tutti/transport'
import { SERVING } from '../log-events.ts'
import { openStep } from '../open-step.ts'
import { readBackendConfig } from './backend-config.ts'
import { chooseModels, scanModels } from './scan-models.ts'
import { StepBackend } from './step-backend.ts'
import type { STEP_FLAGS } from './step-flags.ts'
import { toPeerOptions } from './step-peer.ts'

export interface StartStepOptions extends StartOptions<typeof STEP_FLAGS> {
  readonly clock?: Clock
  /** Joins the broker; `openStepPeer` unless a test has its own. */
  readonly openPeer?: typeof openStepPeer
}

/**
 * Serves models of repositories as a microservice: to routers over the broker, to clients at its own doors. The doors open when
 * every model is READY or has failed; the probes answer before.
 *
 * @throws ServeError if flags do not fit, a repository cannot be read, a port is taken, or, with `--exit-on-error`, a model
 * fails.
 */
export async function startStep(o: StartStepOptions): Promise<Running> {
  const opened = new AsyncDisposableStack()
  try {
    return await serveStep(o, opened)
  } catch (error) {
    await opened.disposeAsync()
    throw error
  }
}

async function serveStep(o: StartStepOptions, opened: AsyncDisposableStack): Promise<Running> {
  const { flags, log } = o
  const clock = o.clock ?? systemClock
  const broker = toBrokerOptions(flags)
  const { defaultMaxBatchSize } = readBackendConfig(flags['backend-config'])
  const models = chooseModels(await scanModels(flags), flags.model)
  const tracing = createTracing(toTracingOptions(o.settings))
  opened.defer(() => tracing.shutdown())
  const metrics = new ServerMetrics()
  const replica = `step-${randomBytes(5).toString('hex')}`

  let peer: StepPeer | undefined
  const health = withCauses(o.health, () =>
    peer?.isConnected === true ? [] : ['the broker is not connected'],
  )
  const metricsServer = await openMetricsDoor({ flags, metrics, health, log })
  opened.defer(async () => metricsServer?.close())
  const step = await openStep({
    replica,
    models,
    engines: createEngines({ log }),
    autoComplete: !flags['disable-auto-complete-config'],
    defaultMaxBatchSize,
    loadParallelism: flags['model-load-thread-count'],
    maxQueuedRequests: flags['max-queue-size'],
    clock,
    log,
    metrics,
  })
  opened.defer(() => step.close())
  const strictReadiness = flags['strict-readiness']
  const backend = new StepBackend({ step, replica, strictReadiness, clock, tracing })
  if (flags['exit-on-error']) refuseFailures(backend)

  const joined = await (o.openPeer ?? openStepPeer)({
    broker,
    peer: replica,
    clock,
    log,
    ...toPeerOptions(step),
  })
  peer = joined
  opened.defer(() => joined.close())
  const doors = await openDoors({ flags, backend, metrics, metricsServer, clock, log })
  opened.defer(() => doors.close())
  log.info(SERVING, { ...doors.ports, replica })
  return {
    stopAccepting: () => {
      doors.stopAccepting()
      backend.stop()
    },
    // Routers are told first, so that they send nothing more while what they sent is finished.
    drain: async ({ signal }) => {
      await Promise.all([joined.drain({ signal }), doors.drain({ timeoutMs: toDrainMs(flags) })])
      await step.drain()
    },
    close: () => opened.disposeAsync(),
  }
}
