import { ServeError } from '@tutti/errors'
import type { ModelControl } from '../inference-backend.ts'

/** @throws ServeError MODEL_CONTROL_REFUSED with Triton's text where there is none: in the modes `none` and `poll`. */
export function requireControl(control: ModelControl | undefined): ModelControl {
  if (control !== undefined) return control
  throw new ServeError(
    'MODEL_CONTROL_REFUSED',
    'explicit model load / unload is not allowed if polling is enabled',
  )
}

/** Over several processes no model is loaded or unloaded on request. */
export const FLAGS_RULE = refuseAll(
  'the flags of steps and routers rule what is loaded, on Kubernetes the Model resource; change these, or run with --model-control-mode=poll',
)

/** On Kubernetes only Model resources decide what is loaded. */
export const MODEL_RESOURCE_RULES = refuseAll(
  'on Kubernetes the Model resource rules what is loaded; change it with kubectl',
)

/** @param instead - what rules, and what to do. */
function refuseAll(instead: string): ModelControl {
  const refuse = async (verb: 'load' | 'unload', model: string): Promise<never> => {
    const text = `explicit model ${verb} of '${model}' is not allowed: ${instead}`
    throw new ServeError('MODEL_CONTROL_REFUSED', text, { details: { model } })
  }
  return { load: (name) => refuse('load', name), unload: (name) => refuse('unload', name) }
}
