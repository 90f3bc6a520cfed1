import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { chooseStartModels, refuseFailures } from '@tutti/front-door'
import {
  type ModelRepository,
  pollRepository,
  type RepositoryModel,
  RepositoryWatch,
} from '@tutti/repository'
import type { StepEvents } from '../log-events.ts'
import type { Step } from '../step.ts'
import { OwnModels, refreshNames } from './loadable-models.ts'
import { chooseModels, type OtherModels, scanModels } from './scan-models.ts'
import { StepModelControl } from './step-control.ts'
import type { StepFlags } from './step-flags.ts'

/** What a step does with its repositories beside serving, by the model control mode. */
export interface ModelUpkeep {
  readonly own: OwnModels
  /** Set in the mode explicit. */
  readonly control?: StepModelControl
  /** Follows what changes on disk until the signal aborts. Resolves then. */
  follow(o: UpkeepOptions): Promise<void>
}

export interface UpkeepOptions {
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly events: StepEvents
  /** What may be loaded changed. */
  readonly changed: () => void
}

/**
 * Loads the models of the start.
 *
 * @throws ServeError if a repository cannot be read, a flag names a model that cannot be served here, or, with
 * `--exit-on-error`, one fails.
 */
export async function loadStartModels(
  flags: StepFlags,
  o: {
    readonly step: Step
    readonly repository: ModelRepository
    readonly others: OtherModels
    readonly replica: string
  },
): Promise<ModelUpkeep> {
  const { step, repository, others, replica } = o
  const own = new OwnModels(repository, flags.model)
  const load = async (names: readonly string[]): Promise<void> => {
    const failures = await loadModels(step, names)
    if (flags['exit-on-error']) refuseFailures(failures)
  }
  if (flags['model-control-mode'] === 'none') {
    const models = await scanModels(flags, others)
    checkOverridden(models, others)
    await load(chooseModels(models, flags.model).map(({ name }) => name))
    return { own, follow: async () => {} }
  }
  if (flags['model-control-mode'] === 'poll') {
    const watch = new RepositoryWatch(own)
    await load(await watch.start())
    return { own, follow: (how) => followDisk(flags, step, watch, how) }
  }
  const names = chooseStartModels(flags, await own.names())
  for (const name of names) if (!own.may(name)) throw mayNot(name)
  await load(names)
  const control = new StepModelControl({ step, own, replica })
  return { own, control, follow: (how) => refreshNames(own, how) }
}

/** Where nothing comes later, an override of what is not there is a typing error. */
function checkOverridden(
  models: readonly RepositoryModel[],
  { overrides = new Map() }: OtherModels,
): void {
  for (const name of overrides.keys()) {
    if (models.some((model) => model.name === name)) continue
    const known = models.map((model) => model.name).join(', ')
    const text = `--model-overrides: "${name}" is in no repository; there are ${known || 'none'}`
    throw new ServeError('FLAG_INVALID', text, { details: { field: '--model-overrides' } })
  }
}

function followDisk(
  flags: StepFlags,
  step: Step,
  watch: RepositoryWatch,
  { clock, signal, events }: UpkeepOptions,
): Promise<void> {
  return pollRepository({
    watch,
    pollMs: flags['repository-poll-secs'] * 1000,
    clock,
    signal,
    apply: async ({ changed, removed }) => {
      for (const name of removed) step.models.unload(name)
      await loadModels(step, changed)
    },
    failed: (error) => events.repositoryUnreadable(error),
  })
}

/** Loads models as they are on disk. @returns what failed, by name; the index says so too. */
async function loadModels(
  step: Step,
  names: readonly string[],
): Promise<ReadonlyMap<string, ServeError>> {
  const failures = new Map<string, ServeError>()
  const load = async (name: string): Promise<void> => {
    try {
      await step.models.load(name)
    } catch (error) {
      failures.set(name, ServeError.from(error))
    }
  }
  await Promise.all(names.map(load))
  return failures
}

function mayNot(name: string): ServeError {
  return new ServeError(
    'FLAG_INVALID',
    `--load-model: "${name}" is none of the models that --model names`,
    { details: { field: '--load-model' } },
  )
}
