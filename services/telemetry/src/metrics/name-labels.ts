import { splitName } from '@tutti/model-config'
import type { MetricSeries } from '../metrics-text.ts'

/** Returns the labels of a model's name: a qualified name becomes two, as in Triton. */
export function nameLabels(qualified: string): MetricSeries['labels'] {
  const { namespace, name } = splitName(qualified) ?? { name: qualified }
  const model = ['model', name] as const
  return namespace === undefined ? [model] : [model, ['namespace', namespace]]
}
