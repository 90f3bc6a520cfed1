import { ServeError } from '@tutti/errors'
import type { ModelControl } from '../backend/inference-backend.ts'

/** @throws ServeError MODEL_CONTROL_REFUSED where nobody loads models, with Triton's text in the modes `none` and `poll`. */
export function requireControl(control: ModelControl | undefined): ModelControl {
  if (control?.refusal !== undefined) throw control.refusal
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
  const text = `explicit model load / unload is not allowed: ${instead}`
  const refusal = new ServeError('MODEL_CONTROL_REFUSED', text)
  const refuse = (): Promise<never> => Promise.reject(refusal)
  return { refusal, load: refuse, unload: refuse }
}
