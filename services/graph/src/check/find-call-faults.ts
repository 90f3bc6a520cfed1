import { isDecoupled, type ModelConfig } from '@tutti/model-config'
import type { CallRules } from '../call-rules.ts'

/** A rule for the call of a step that the step's model cannot have. */
export interface CallFault {
  /** Path of the field within the step. */
  readonly field: string
  readonly text: string
}

/** Fields by which a request may go to a replica that has nothing of what was before. */
const REPEATING = ['retry', 'hedge'] as const satisfies readonly (keyof CallRules)[]

/** Codes of failures that can be those of requests which have not run. */
const UNRUN: ReadonlySet<string> = new Set(['UNAVAILABLE', 'RESOURCE_EXHAUSTED'])

/** Finds the rules that a step cannot have: for what its model is, or because a request may then run twice. */
export function findCallFaults(
  rules: CallRules | undefined,
  model: ModelConfig,
): readonly CallFault[] {
  if (rules === undefined) return []
  const why = whyOnce(model)
  if (why === undefined) return rules.mayRunTwice === true ? [] : [...findUnallowed(rules)]
  return REPEATING.filter((field) => rules[field] !== undefined).map((field) => {
    return { field, text: `${why}; want no ${field} for '${model.name}'` }
  })
}

function whyOnce(model: ModelConfig): string | undefined {
  if (isDecoupled(model)) return 'its responses are a stream, of which each replica has its own'
  return model.sequence_batching && 'a sequence has its state on one replica'
}

const WANT = 'want mayRunTwice: true of the step, or of its Model, if that does no harm'

function* findUnallowed({ retry, hedge }: CallRules): Generator<CallFault> {
  if (hedge !== undefined) {
    yield { field: 'hedge', text: `a request may execute at two replicas; ${WANT}` }
  }
  const codes = retry?.retryOn.filter((code) => !UNRUN.has(code)) ?? []
  if (codes.length > 0) {
    const text = `a request that failed with ${codes.join(', ')} may have run; ${WANT}`
    yield { field: 'retry.retryOn', text }
  }
}
