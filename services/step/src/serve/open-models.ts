import type { BeyondConfig } from '@tutti/api'
import type { Engine, Engines } from '@tutti/backends'
import { type Logger, type StatusLine } from '@tutti/chassis'
import type { ModelRepository } from '@tutti/repository'
import type { ProcessBase } from '@tutti/server'
import { openStep, type Step } from '../step.ts'
import type { StepOptions } from '../step-options.ts'
import { type BackendConfig, readBackendConfig } from './backend-config.ts'
import { type ModelFlags, openEngines, openRepository, toStepSettings } from './model-flags.ts'

export interface OpenModelsOptions
  extends Pick<
    StepOptions,
    | 'replica'
    | 'unpinned'
    | 'routers'
    | 'control'
    | 'resolveFrom'
    | 'builtins'
    | 'openParts'
    | 'modelLost'
  > {
  readonly flags: ModelFlags & { readonly 'allow-gpu-metrics'?: boolean }
  readonly log: Logger
  readonly statusLine?: StatusLine | undefined
  /** Models beside the repositories, and credentials for buckets. */
  readonly places?: Omit<Parameters<typeof openRepository>[1], 'env' | 'log' | 'statusLine'>
  /** Settings of models beyond their configurations. */
  readonly beyond?: BeyondConfig | undefined
  /** Engines; those of this build if absent. Tests pass their own. */
  readonly engines?: Engines | readonly Engine[] | undefined
  /** Settings of backends; those of `--backend-config` if absent. */
  readonly backends?: BackendConfig | undefined
}

/** Step with the models of a process, and the repository that they come from. */
export interface OpenedModels {
  readonly step: Step
  readonly repository: ModelRepository
}

/**
 * Opens the repositories that the flags name, and a step over them that has no models loaded yet. `shared.opened` closes both.
 *
 * @throws ServeError FLAG_INVALID for flags that do not fit.
 */
export function openModels(shared: ProcessBase, o: OpenModelsOptions): OpenedModels {
  const { flags, log, statusLine, places, beyond, engines: given, backends } = o
  const {
    replica,
    unpinned,
    routers,
    control,
    resolveFrom,
    builtins = false,
    openParts,
    modelLost,
  } = o
  const { metrics, cache, clock, env, opened } = shared
  const repository = openRepository(flags, { ...places, env, log, statusLine })
  opened.defer(() => repository.close())
  const { defaultMaxBatchSize, ...chosen } = backends ?? readBackendConfig(flags['backend-config'])
  const { 'backend-directory': backendDirectory, 'allow-gpu-metrics': gpuMetrics } = flags
  const settings = toStepSettings(flags, env)
  const { hostPolicies } = settings
  const engines = { log, metrics, backendDirectory, gpuMetrics, hostPolicies, ...chosen }
  const step = openStep({
    ...settings,
    ...beyond,
    replica,
    builtins,
    ...(openParts && { openParts }),
    ...(modelLost && { modelLost }),
    ...(unpinned && { unpinned }),
    ...(routers && { routers }),
    ...(control && { control }),
    resolveFrom,
    repository,
    engines: given ?? openEngines(engines),
    defaultMaxBatchSize,
    cache,
    clock,
    log,
    metrics,
  })
  opened.defer(() => step.close())
  return { step, repository }
}
