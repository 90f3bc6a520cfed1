import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { type Engine, type Engines, LentMemory } from '@tutti/backends'
import {
  type Clock,
  logServing,
  openTracing,
  type Running,
  type StartOptions,
  systemClock,
  toDrainMs,
  withCauses,
} from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { openCache } from '@tutti/response-cache'
import {
  checkAnswered,
  openMetricsServer,
  openRegions,
  openServers,
  type Servers,
  type ServersOptions,
} from '@tutti/server'
import { FLAGS_RULE } from '@tutti/serving'
import { readMetricsFlags, ServerMetrics } from '@tutti/telemetry'
import {
  openStepEndpoint,
  readBrokerFlags,
  type StepEndpoint,
  transportFamilies,
} from '@tutti/transport'
import { openStep, type Step } from '../step.ts'
import { readBackendConfig } from './backend-config.ts'
import { readOtherModels } from './model-directories.ts'
import { openEngines, openRepository, toStepSettings } from './model-flags.ts'
import { loadStartModels } from './start-models.ts'
import { createStepAnswers } from './step-answers.ts'
import { StepBackend, type StepBackendOptions } from './step-backend.ts'
import { toEndpointOptions } from './step-endpoint.ts'
import type { STEP_FLAGS, StepFlags } from './step-flags.ts'
import { untilUnpinned } from './until-unpinned.ts'

export interface StartStepOptions extends StartOptions<typeof STEP_FLAGS> {
  readonly clock?: Clock
  /** Joins the broker; `openStepEndpoint` unless a test has its own. */
  readonly openEndpoint?: typeof openStepEndpoint
  /** Those of this build unless a test has its own. */
  readonly engines?: Engines | readonly Engine[]
}

/**
 * Serves models of repositories as a microservice: to routers over the broker, to clients on its own ports. These listen once
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
  const { flags, log, statusLine, clock = systemClock } = o
  const { defaultMaxBatchSize, ...backends } = readBackendConfig(flags['backend-config'])
  const backendDirectory = flags['backend-directory']
  const { beyond, ...others } = readOtherModels(flags)
  const repository = openRepository(flags, { ...others, env: o.env ?? {}, log, statusLine })
  opened.defer(() => repository.close())
  const tracing = opened.adopt(await openTracing({ ...o.settings, log }), (one) => one.shutdown())
  const metrics = new ServerMetrics({ latencies: readMetricsFlags(flags) })
  const shared = { metrics, log }
  const cache = await openCache(flags, { clock, ...shared, env: o.env, opened })
  const own = { replica: `step-${randomBytes(5).toString('hex')}`, host: hostname() }

  let member: StepEndpoint | undefined
  let hosted: Step | undefined
  const unpinning = new AbortController()
  opened.defer(() => unpinning.abort(new ServeError('SERVER_STOPPING', 'the step closes')))
  const pins = { ...own, clock, member: () => member, signal: unpinning.signal }
  const causes = () => member?.obstacles ?? ['the broker is not connected']
  const health = withCauses(o.health, causes)
  const answers = createStepAnswers(own, () => hosted)
  const metricsServer = await openMetricsServer({ flags, metrics, health, answers, log })
  opened.defer(async () => metricsServer?.close())
  const settings = { ...toStepSettings(flags, o.env), ...beyond }
  const { hostPolicies } = settings
  const step = openStep({
    ...settings,
    replica: own.replica,
    repository,
    unpinned: (pin) => untilUnpinned(pin, pins),
    engines: o.engines ?? openEngines({ ...shared, backendDirectory, hostPolicies, ...backends }),
    defaultMaxBatchSize,
    routers: () => member?.routers,
    control: () => FLAGS_RULE,
    cache,
    clock,
    ...shared,
  })
  hosted = step
  opened.defer(() => step.close())
  const follow = await loadStartModels(flags, { ...o, step, repository, others, clock })
  const regions = openRegions({ flags, opened })
  const backend = toBackend(flags, { step, tracing, regions })
  const joined = await (o.openEndpoint ?? openStepEndpoint)({
    ...readBrokerFlags(flags),
    member: own.replica,
    clock,
    log,
    ...toEndpointOptions(step, own),
  })
  member = joined
  metrics.addFamilies(() => transportFamilies(joined.transport))
  opened.defer(() => joined.close())
  const closing = new AbortController()
  const followed = follow(closing.signal)
  opened.defer(() => repository.abandon(followed))
  opened.defer(() => closing.abort())
  const servers = await open({ flags, backend, metrics, metricsServer, clock, log }, opened)
  opened.defer(logServing({ log, clock, fields: { ...servers.ports, ...own }, causes }))
  return toRunning(flags, { closing, servers, backend, member: joined, step, opened })
}

function toBackend(flags: StepFlags, o: Omit<StepBackendOptions, 'strictReadiness'>): StepBackend {
  return new StepBackend({ ...o, strictReadiness: flags['strict-readiness'] })
}

/** The servers, with memory for the large tensors of their requests. */
async function open(o: ServersOptions, opened: AsyncDisposableStack): Promise<Servers> {
  const memory = LentMemory.open(o.flags['max-inflight-bytes'])
  opened.defer(() => void memory?.close())
  return opened.adopt(await openServers({ ...o, memory }), (servers) => servers.close())
}

interface OpenedStep {
  readonly closing: AbortController
  readonly servers: Servers
  readonly backend: StepBackend
  readonly member: StepEndpoint
  readonly step: Step
  readonly opened: AsyncDisposableStack
}

function toRunning(flags: StepFlags, o: OpenedStep): Running {
  const { closing, servers, backend, member, step, opened } = o
  return {
    stopAccepting: () => {
      closing.abort()
      servers.stopAccepting()
      backend.stop()
    },
    // The routers learn first, so that they send nothing more while what they sent is finished.
    drain: async ({ signal }) => {
      const drained = [
        servers.drain({ timeoutMs: toDrainMs(flags) }),
        member.drain({ signal }),
      ] as const
      const [isAnswered] = await Promise.all(drained)
      await step.drain()
      checkAnswered(isAnswered)
    },
    close: () => opened.disposeAsync(),
    isBusy: () => step.isBusy,
  }
}
