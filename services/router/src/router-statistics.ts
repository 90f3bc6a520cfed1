import type { StepControl } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import type { StatisticsRecorder } from '@tutti/front-door'
import type { ModelStatistics } from '@tutti/model-config'

/**
 * The statistics of models (asked of the steps) and ensembles (recorded here), by name and version.
 *
 * @throws ServeError INVALID_REQUEST with Triton's text if nothing is known under the name or version.
 */
export async function collectStatistics(
  steps: readonly StepControl[],
  ensembles: readonly StatisticsRecorder[],
  name: string,
  version: string,
): Promise<readonly ModelStatistics[]> {
  const asked = await Promise.all(steps.map((step) => step.statistics(name, '')))
  const own = ensembles.map((recorder) => recorder.snapshot())
  const named = [...asked.flat(), ...own].filter((one) => name === '' || one.name === name)
  if (name !== '' && named.length === 0) {
    throw new ServeError('INVALID_REQUEST', `requested model '${name}' is not available`)
  }
  const found = named.filter((one) => version === '' || one.version === version)
  if (version !== '' && found.length === 0) {
    throw new ServeError(
      'INVALID_REQUEST',
      `requested model version is not available for model '${name}'`,
    )
  }
  return found.toSorted((a, b) => compare(a.name, b.name) || Number(a.version) - Number(b.version))
}

function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
