import { NO_DEVICES } from '@tutti/backends'
import { silentLogger, systemClock } from '@tutti/chassis'
import { ModelRepository } from '@tutti/repository'
import { openStep, type Step } from '../step.ts'

import type { StepOptions } from '../step-options.ts'

/** Options for a step of a test, with the defaults of the flags. */
export function stepOptions(o: Partial<StepOptions> = {}): StepOptions {
  return {
    replica: 'r1',
    engines: [],
    autoComplete: true,
    devices: NO_DEVICES,
    loadParallelism: 4,
    maxQueuedRequests: 4096,
    clock: systemClock,
    log: silentLogger,
    ...o,
  }
}

/** Opens a step over repositories. Resolves when every model of these is READY or has failed. */
export async function openTestStep(
  paths: readonly string[],
  o: Partial<StepOptions>,
): Promise<Step> {
  const repository = new ModelRepository({ paths })
  const step = openStep(stepOptions({ repository, ...o }))
  const load = (name: string): Promise<void> => step.models.load(name).catch(() => {})
  await Promise.all((await repository.names()).map(load))
  return step
}
