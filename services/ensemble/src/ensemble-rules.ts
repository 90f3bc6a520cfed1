import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'

/** What an Ensemble says beyond its ModelConfig: config.pbtxt has no words for it. */
export interface EnsembleRules {
  /** By step, in the config's order; unique. Errors, details and metrics name a step so. */
  readonly stepNames: readonly string[]
  /**
   * By step, the indexes of steps that must have ended before it begins, whether it reads what they make or not. It orders
   * steps that run and makes none run: one that no requested output needs is not waited for.
   */
  readonly dependsOn: readonly (readonly number[])[]
  /** The longest time for a request, in milliseconds; absent for none. A client's deadline may be sooner. */
  readonly timeoutMs?: number | undefined
  /** Requests that a router executes at the same time; more are refused at once. Absent for no bound. */
  readonly maxInFlightRequests?: number | undefined
}

/**
 * Checks rules against the ensemble that they are for.
 *
 * @throws ServeError ENSEMBLE_INVALID that names the field, what it is and what is wanted.
 */
export function checkEnsembleRules(config: ModelConfig, rules: EnsembleRules): void {
  const { stepNames, dependsOn } = rules
  const count = config.ensemble_scheduling?.step.length ?? 0
  checkLength(config, 'stepNames', stepNames, count)
  checkLength(config, 'dependsOn', dependsOn, count)
  for (const [i, name] of stepNames.entries()) {
    if (name !== '' && stepNames.indexOf(name) === i) continue
    throw refused(config, `stepNames[${i}]`, `'${name}'`, 'a name that no other step has')
  }
  for (const [i, list] of dependsOn.entries()) {
    for (const [j, step] of list.entries()) {
      if (Number.isInteger(step) && step >= 0 && step < count) continue
      const want = `a step's index from 0 to ${count - 1}`
      throw refused(config, `dependsOn[${i}][${j}]`, String(step), want)
    }
  }
  checkPositive(config, 'timeoutMs', rules.timeoutMs)
  checkPositive(config, 'maxInFlightRequests', rules.maxInFlightRequests)
}

function checkLength(
  config: ModelConfig,
  field: string,
  list: readonly unknown[],
  count: number,
): void {
  if (list.length === count) return
  throw refused(config, field, `${list.length} entries`, `one for each of the ${count} steps`)
}

function checkPositive(config: ModelConfig, field: string, value: number | undefined): void {
  if (value === undefined || (Number.isInteger(value) && value > 0)) return
  throw refused(config, field, String(value), 'a whole number above 0')
}

function refused(config: ModelConfig, field: string, got: string, want: string): ServeError {
  const text = `ensemble '${config.name}': rules.${field} is ${got}, want ${want}`
  return new ServeError('ENSEMBLE_INVALID', text, {
    details: { ensemble: config.name, field: `rules.${field}` },
  })
}
