import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import type { Engine, Engines } from '@tutti/backends'
import { type Clock, obeyProxies, type Running, type StartOptions } from '@tutti/chassis'
import { PartRunner } from '@tutti/router/parts'
import {
  type OpenProbes,
  openRegions,
  type ProcessBase,
  type ServedContent,
  serveProcess,
} from '@tutti/server'
import { FLAGS_RULE } from '@tutti/serving'
import type { openStepEndpoint } from '@tutti/transport'
import type { Step } from '../step.ts'
import { readOtherModels } from './model-directories.ts'
import { openModels } from './open-models.ts'
import { openRequestMemory } from './request-memory.ts'
import { loadStartModels } from './start-models.ts'
import { createStepAnswers } from './step-answers.ts'
import { StepBackend } from './step-backend.ts'
import type { STEP_FLAGS } from './step-flags.ts'
import { StepMember } from './step-member.ts'

export interface StartStepOptions extends StartOptions<typeof STEP_FLAGS> {
  readonly clock?: Clock
  /** Function that joins the broker; `openStepEndpoint` if absent. Tests pass their own. */
  readonly openEndpoint?: typeof openStepEndpoint
  /** Engines; those of this build if absent. Tests pass their own. */
  readonly engines?: Engines | readonly Engine[]
}

/**
 * Serves models as a microservice: to routers over the broker, and to clients on ports of its own. The clients' ports listen once
 * every model is READY or has failed. The probes answer before that.
 *
 * @throws ServeError if flags do not fit, a repository cannot be read, a port is taken, or, with `--exit-on-error`, a model
 * fails.
 */
export function startStep(o: StartStepOptions): Promise<Running> {
  return serveProcess(o, (shared, openProbes) => composeStep(o, shared, openProbes))
}

async function composeStep(
  o: StartStepOptions,
  shared: ProcessBase,
  openProbes: OpenProbes,
): Promise<ServedContent> {
  const { flags } = o
  const { log, opened, stopping, tracing, clock } = shared
  obeyProxies(shared.env)
  const { beyond, ...others } = readOtherModels(flags)
  const own = { replica: `step-${randomBytes(5).toString('hex')}`, host: hostname() }
  const member = new StepMember(shared, { flags, own, openEndpoint: o.openEndpoint })
  let hosted: Step | undefined
  await openProbes({ members: [member], answers: createStepAnswers(own, () => hosted) })
  const { step, repository } = openModels(shared, {
    flags,
    log,
    statusLine: o.statusLine,
    engines: o.engines,
    replica: own.replica,
    builtins: flags.builtins,
    places: others,
    beyond,
    unpinned: member.whenUnpinned,
    routers: member.routers,
    control: () => FLAGS_RULE,
    ...(o.giveUp && { modelLost: o.giveUp }),
    openParts: (models) => {
      const { replica } = own
      const maxBytes = flags['max-inflight-bytes']
      return new PartRunner({ ...models, replica, maxBytes, clock, tracing })
    },
  })
  hosted = step
  const follow = await loadStartModels(flags, { ...o, ...shared, step, repository, others })
  const strictReadiness = flags['strict-readiness']
  const regions = openRegions({ flags, opened })
  const backend = new StepBackend({ step, strictReadiness, tracing, regions })
  await member.join(step)
  const followed = follow(stopping)
  opened.defer(() => repository.abandon(followed))
  return {
    backend,
    stop: () => backend.stop(),
    models: step,
    memory: openRequestMemory(flags['max-inflight-bytes'], shared),
    fields: own,
  }
}
