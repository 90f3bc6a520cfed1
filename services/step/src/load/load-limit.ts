import { loadTimeout } from '@tutti/backends'
import type { Clock } from '@tutti/chassis'
import { plainName } from '@tutti/model-config'

/** A load, and the bounds of loads. */
interface LimitedLoad {
  readonly clock: Clock
  /** Milliseconds that a load may take, by model, as in BeyondConfig. */
  readonly loadLimits?: ReadonlyMap<string, number>
  /** Name of the model. */
  readonly name: string
  /** Aborts when the model is no longer wanted. */
  readonly signal: AbortSignal
}

/** Bounds a load by the `timeouts.load` of its Model, from now until `end`; without that field there is no bound. */
export function limitLoad({ clock, loadLimits, name, signal }: LimitedLoad): {
  readonly signal: AbortSignal
  readonly end: () => void
} {
  const ms = loadLimits?.get(plainName(name))
  if (ms === undefined) return { signal, end: () => {} }
  const late = new AbortController()
  const end = clock.setTimer(ms, () => late.abort(loadTimeout(ms)))
  return { signal: AbortSignal.any([signal, late.signal]), end }
}
