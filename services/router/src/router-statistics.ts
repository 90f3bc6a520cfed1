import { mergeStatistics, type StepControl } from '@tutti/ensemble'
import { type StatisticsRecorder, selectStatistics } from '@tutti/front-door'
import type { ModelStatistics } from '@tutti/model-config'

/**
 * The statistics of models (asked of the steps, added up over the replicas) and ensembles (recorded here), by name and
 * version. A step that does not answer is left out: its counts are missing, the others' are not.
 *
 * @throws ServeError INVALID_REQUEST with Triton's text if nothing is known under the name or version.
 */
export async function collectStatistics(
  steps: readonly StepControl[],
  ensembles: readonly StatisticsRecorder[],
  name: string,
  version: string,
): Promise<readonly ModelStatistics[]> {
  const asked = await Promise.allSettled(steps.map((step) => step.statistics(name, '')))
  const answered = asked.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []))
  const own = ensembles.map((recorder) => recorder.snapshot())
  return selectStatistics([...mergeStatistics(answered), ...own], name, version)
}
