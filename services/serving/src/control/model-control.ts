import { ServeError } from '@tutti/errors'
import type { ModelControl } from '../backend/inference-backend.ts'

/**
 * Checks that clients may load and unload models.
 *
 * @throws ServeError MODEL_CONTROL_REFUSED if they may not, with Triton's text in the modes `none` and `poll`.
 */
export function requireControl(control: ModelControl | undefined): ModelControl {
  if (control?.refusal !== undefined) throw control.refusal
  if (control !== undefined) return control
  throw new ServeError(
    'MODEL_CONTROL_REFUSED',
    'explicit model load / unload is not allowed if polling is enabled',
  )
}

/** The control of servers over several processes: it refuses every load and unload, since flags rule. */
export const FLAGS_RULE = refuseAll(
  'the flags of steps and routers rule what is loaded, on Kubernetes the Model resource; change these, or run with --model-control-mode=poll',
)

/** The control of servers on Kubernetes: it refuses every load and unload, since Model resources rule. */
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
