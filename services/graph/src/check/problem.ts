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
  CallInvalid: 'a step has a rule for its call that its model cannot have',
  ConditionInvalid: 'a condition cannot be evaluated, or something waits for what is never absent',
  BuiltinInvalid: 'a step has a built-in, an option or an input of it that does not fit',
  RepeatInvalid: 'a step cannot run for each item, or in a loop, as it says',
  SchemaPending: 'a model’s signature is not known yet',
} as const satisfies Record<string, string>

export type AcceptedReason = keyof typeof ACCEPTED_REASONS

/** One thing that is wrong with an ensemble, in the words of its author. */
export interface Problem {
  readonly reason: AcceptedReason
  /** Path of the field, e.g. `steps[2](ocr).inputMap[image]` or `ensemble_scheduling.step[2].input_map[image]`; '' for all. */
  readonly path: string
  /** Text in one line, without the path: what was got, what is wanted. */
  readonly message: string
}

/** Makes the error of a load or of an import that a problem refuses. */
export function toRefusal({ path, message }: Problem): ServeError {
  return new ServeError('ENSEMBLE_INVALID', `${path}: ${message}`, { details: { field: path } })
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
