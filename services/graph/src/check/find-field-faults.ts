import type { ModelConfig } from '@tutti/model-config'

/** A text, and the field if there is one to name. */
export type FieldFault = readonly [text: string, field?: string]

/** Yields what is wrong with an ensemble's config.pbtxt outside of its graph, with Triton's texts, in Triton's order. */
export function* findFieldFaults(config: ModelConfig): Generator<FieldFault> {
  const { name, platform, ensemble_scheduling: scheduling } = config
  const isEnsemble = platform === 'ensemble'
  if (isEnsemble && config.backend !== '') {
    yield [`Ensemble model '${name}' must have platform type 'ensemble' and empty backend type`]
  }
  if (isEnsemble && scheduling === undefined) {
    yield [`ensemble scheduling must be set for ensemble ${name} whose platform is ensemble`]
  }
  if (scheduling === undefined) return
  if (!isEnsemble) {
    yield [`ensemble scheduling cannot be set for model '${name}' whose platform is not ensemble`]
  }
  yield* findFieldsOfModels(config)
  if (scheduling.step.length === 0) yield [`must specify 'step' for ensemble '${name}'`]
  for (const [index, { model_namespace: namespace }] of scheduling.step.entries()) {
    if (namespace === '') continue
    // A Triton without --model-namespacing takes the field and does not look at it.
    yield [
      `'model_namespace' is '${namespace}' in step ${index} of ensemble '${name}', want '': model namespacing is off`,
      `ensemble_scheduling.step[${index}].model_namespace`,
    ]
  }
}

/** Yields the fields that only a model with an engine has. */
function* findFieldsOfModels(config: ModelConfig): Generator<FieldFault> {
  const { name } = config
  if (config.instance_group.length > 0) {
    yield [`instance group should not be specified for ensemble '${name}'`]
  }
  if (config.optimization !== undefined) {
    yield [`optimization should not be specified for ensemble '${name}'`]
  }
  if (config.model_warmup.length > 0) {
    yield [`model_warmup can not be specified for ensemble '${name}'`]
  }
}
