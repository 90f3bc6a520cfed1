import type { InferCallOptions, InferenceClient } from '@tutti/protocol/client'
import { answerProblem, type Question } from './questions.ts'

/** How one request ended. */
export type Outcome =
  | { readonly kind: 'right' }
  | { readonly kind: 'wrong'; readonly what: string }
  | {
      readonly kind: 'error'
      readonly code: string
      readonly reason: string
      readonly message: string
      readonly details: Readonly<Record<string, unknown>>
    }

/**
 * So long that no test gets there: a request that ends before was not saved by its deadline. It is shorter than a test's own
 * limit, so that a request that hangs shows as what it is.
 */
export const LONG_MS = 80_000

/** Asks once and checks the answer. Never rejects. */
export async function ask(
  client: InferenceClient,
  question: Question,
  o: InferCallOptions = {},
): Promise<Outcome> {
  try {
    const answer = await client.infer(question.request, { timeoutMs: LONG_MS, ...o })
    const what = answerProblem(question, answer)
    return what === undefined ? { kind: 'right' } : { kind: 'wrong', what }
  } catch (error) {
    return toOutcome(error)
  }
}

function toOutcome(error: unknown): Outcome {
  const { code, reason, message, details } = errorFields(error)
  return {
    kind: 'error',
    code: String(code),
    reason: String(reason),
    message: String(message),
    details: Object.fromEntries(Object.entries(details ?? {})),
  }
}

/** Reads what an error of the client says of itself. */
export function errorFields(
  error: unknown,
): Readonly<Record<'code' | 'reason' | 'message' | 'details', unknown>> {
  const field = (name: string): unknown =>
    error instanceof Error ? Reflect.get(error, name) : undefined
  return {
    code: field('code'),
    reason: field('reason'),
    message: error instanceof Error ? error.message : String(error),
    details: field('details'),
  }
}

/** In words, for messages of assertions and for counting. */
export function describe(outcome: Outcome): string {
  if (outcome.kind === 'right') return 'right'
  if (outcome.kind === 'wrong') return `wrong: ${outcome.what}`
  return `${outcome.code} ${outcome.reason}: ${outcome.message}`
}

const RETRIABLE = new Set(['STEP_LOST', 'STEP_UNAVAILABLE', 'REVISION_GONE', 'SERVER_STOPPING'])

/** True for a right answer, or an error by which a client knows that it may ask again. */
export function isClean(outcome: Outcome): boolean {
  if (outcome.kind !== 'error') return outcome.kind === 'right'
  return outcome.code === 'UNAVAILABLE' && RETRIABLE.has(outcome.reason)
}

/** Finds what was neither a right answer nor a clean error, each kind once. */
export function unclean(outcomes: readonly Outcome[]): readonly string[] {
  return [...new Set(outcomes.filter((outcome) => !isClean(outcome)).map(describe))]
}
