import { nearestName, ServeError } from '@tutti/errors'

/** The reasons why an Ensemble is not accepted, with their meanings. The condition `Accepted` has one of them. */
export const ACCEPTED_REASONS = {
  InvalidSpec: 'the manifest breaks a rule of its schema',
  NameConflict: 'another Model or Ensemble of the namespace has the served name',
  UnknownStep: 'a reference names a step that is not there',
  UnknownTensor: 'a reference names a tensor that is not there, or a map one that the model lacks',
  AmbiguousReference: 'a reference may mean an ensemble tensor or a step’s output',
  UnknownModel: 'a step runs a model, or a version of it, that is not there',
  MissingInput: 'a model’s input is fed by nothing',
  MultipleProducers: 'something is fed or made twice',
  UnusedInput: 'nothing reads an input of the ensemble',
  UnreachableStep: 'nothing reads what a step makes',
  OutputInvalid: 'an output cannot have the name that it is given',
  CycleDetected: 'steps, or Ensembles, wait for one another',
  DatatypeMismatch: 'a tensor has one datatype where it is made and another where it is read',
  ShapeMismatch: 'a tensor has one shape where it is made and another where it is read',
  LimitExceeded: 'the ensemble takes larger batches than a model of it',
  DecoupledInvalid: 'responses of decoupled models cannot be brought together',
  HedgeInvalid: 'a step would ask a second replica of a model that cannot have that',
  SchemaPending: 'a model’s signature is not known yet',
} as const satisfies Record<string, string>

export type AcceptedReason = keyof typeof ACCEPTED_REASONS

/** One thing that is wrong with an Ensemble: where, what was got and what is wanted, in one line. */
export class EnsembleFault extends ServeError {
  readonly fault: AcceptedReason

  constructor(fault: AcceptedReason, path: string, problem: string) {
    super('ENSEMBLE_INVALID', `${path}: ${problem}`, { details: { field: path } })
    this.fault = fault
  }
}

/** Takes a fault of a check. If the function returns, the check goes on. */
export type ReportFault = (fault: EnsembleFault) => void

/** Throws a fault, which ends a check at its first one. */
export function raise(fault: EnsembleFault): never {
  throw fault
}

/**
 * Makes the fault of a field.
 *
 * @param path - from `spec` on, e.g. `steps[2](ocr).inputMap[image]`.
 */
export function refused(fault: AcceptedReason, path: string, problem: string): EnsembleFault {
  return new EnsembleFault(fault, path, problem)
}

/** Builds a hint for an unknown name: the nearest known name, else a list of up to eight known names. */
export function hintOf(name: string, known: Iterable<string>): string {
  const names = [...known]
  const near = nearestName(name, names)
  if (near !== undefined) return `; did you mean '${near}'?`
  if (names.length === 0) return ''
  const shown = names.slice(0, 8).map((other) => `'${other}'`)
  return `; there ${names.length === 1 ? 'is' : 'are'} ${shown.join(', ')}${names.length > 8 ? ' and more' : ''}`
}
