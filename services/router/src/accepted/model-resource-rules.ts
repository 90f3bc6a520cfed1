import { ServeError } from '@tutti/errors'
import type { ModelControl } from '@tutti/front-door'

/** Where Model resources say what is loaded, nobody else does. */
export const MODEL_RESOURCE_RULES: ModelControl = {
  load: (name) => Promise.reject(refused('load', name)),
  unload: (name) => Promise.reject(refused('unload', name)),
}

function refused(verb: 'load' | 'unload', model: string): ServeError {
  const text = `explicit model ${verb} of '${model}' is not allowed: on Kubernetes the Model resource rules what is loaded; change it with kubectl`
  return new ServeError('MODEL_CONTROL_REFUSED', text, { details: { model } })
}
