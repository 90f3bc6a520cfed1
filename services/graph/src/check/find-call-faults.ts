import { isDecoupled, type ModelConfig } from '@tutti/model-config'
import type { CallRules } from '../call-rules.ts'

/** A rule for the call of a step that the step cannot have. */
export interface CallFault {
  /** Path of the field within the step. */
  readonly field: string
  readonly text: string
}

/** Fields that may send a request to a second replica, which has no state of the first. */
const REPEATING = ['retry', 'hedge', 'onError'] as const satisfies readonly (keyof CallRules)[]

/** Codes of failures that can be those of requests which have not run. */
const UNRUN: ReadonlySet<string> = new Set(['UNAVAILABLE', 'RESOURCE_EXHAUSTED'])

/**
 * Finds the rules that a step cannot have: for what its model is, or because a request may then run twice.
 *
 * @param fallback - configuration of the step's fallback, if that is known.
 */
export function findCallFaults(
  rules: CallRules | undefined,
  model: ModelConfig,
  fallback: ModelConfig | undefined,
): readonly CallFault[] {
  if (rules === undefined) return []
  const why = whyOnce(model)
  if (why === undefined) return [...findUnallowed(rules), ...findUnfit(model, fallback)]
  return REPEATING.filter((field) => rules[field] !== undefined).map((field) => {
    return { field, text: `${why}; want no ${field} for '${model.name}'` }
  })
}

function whyOnce(model: ModelConfig): string | undefined {
  if (isDecoupled(model)) return 'its responses are a stream, of which each replica has its own'
  return model.sequence_batching && 'a sequence has its state on one replica'
}

const WANT = 'want mayRunTwice: true of the step, or of its Model, if that does no harm'

function* findUnallowed({ retry, hedge, mayRunTwice }: CallRules): Generator<CallFault> {
  if (mayRunTwice === true) return
  if (hedge !== undefined) {
    yield { field: 'hedge', text: `a request may execute at two replicas; ${WANT}` }
  }
  const codes = retry?.retryOn.filter((code) => !UNRUN.has(code)) ?? []
  if (codes.length > 0) {
    const text = `a request that failed with ${codes.join(', ')} may have run; ${WANT}`
    yield { field: 'retry.retryOn', text }
  }
}

/** Finds why a model cannot answer in place of another. That its tensors differ is told where tensors are compared. */
function* findUnfit(model: ModelConfig, fallback: ModelConfig | undefined): Generator<CallFault> {
  if (fallback === undefined) return
  const { name } = fallback
  const field = 'onError.fallback'
  if (isDecoupled(fallback)) {
    yield { field, text: `'${name}' is decoupled, want a model of one response` }
  } else if (fallback.sequence_batching !== undefined) {
    yield { field, text: `'${name}' has sequences, want a model without` }
  }
  const [own, other] = [model, fallback].map((one) => one.max_batch_size > 0)
  if (own === other) return
  const [got, want] = own === true ? ['none', 'one'] : ['one', 'none']
  const text = `got ${got}: want a batch dimension of '${name}' as '${model.name}' has ${want}`
  yield { field, text }
}
