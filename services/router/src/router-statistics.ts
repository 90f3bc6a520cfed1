import { mergeStatistics, type StepControl } from '@tutti/ensemble'
import type { ModelStatistics } from '@tutti/model-config'
import { type StatisticsRecorder, selectStatistics } from '@tutti/server'

/**
 * The statistics of models (asked of the steps, added up over the replicas) and ensembles (recorded here), by name and
 * version.
 *
 * @throws ServeError INVALID_REQUEST with Triton's text if nothing is known under the name or version; that of a step that
 * does not answer: a sum without its counts would go backwards.
 */
export async function collectStatistics(
  steps: readonly StepControl[],
  ensembles: readonly StatisticsRecorder[],
  name: string,
  version: string,
): Promise<readonly ModelStatistics[]> {
  const asked = await Promise.all(steps.map((step) => step.statistics(name, '')))
  const own = ensembles.map((recorder) => recorder.snapshot())
  return selectStatistics([...mergeStatistics(asked), ...own], name, version)
}
