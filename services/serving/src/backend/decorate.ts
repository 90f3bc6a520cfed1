import type { ResolvedModel } from './inference-backend.ts'

/** A model that is executed otherwise. */
export function decorateModel(
  model: ResolvedModel,
  execute: ResolvedModel['execute'],
): ResolvedModel {
  const { name, version, config, isDecoupled } = model
  return { name, version, config, isDecoupled, labels: (output) => model.labels(output), execute }
}
