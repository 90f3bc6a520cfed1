import {
  type Answer,
  type Asked,
  type Fault,
  failed,
  faultOf,
  type Interpretation,
  type Once,
  type StepCallSketch,
  Undecided,
} from './interpretation.ts'
import { answerOf, failureText } from './scripted-models.ts'
import type { CalleeSketch, ModelSketch, StepSketch } from './sketch.ts'

/** Makes the call of what a step runs, with its retries by the rules of the step. */
export function withRetries({ o, step, ensemble }: StepCallSketch): Once {
  const { callee, retry, hedgeMs } = step
  const plain = target({ o, ensemble }, callee)
  const once = hedgeMs === undefined ? plain : hedged(plain, hedgeMs)
  if (retry === undefined) return tryWithoutRules(callee, once)
  return (asked) => {
    o.called(step, asked.at)
    const isAllowed = (at: number): boolean => o.retry(step, at)
    const delayMs = (fault: Fault, tries: number): number | undefined =>
      delayByRule(step, fault, tries)
    return tryAgain(asked, { once, delayMs, isAllowed })
  }
}

/** Computes a call for which a second replica is asked after a time without an answer. */
function hedged(once: Once, hedgeMs: number): Once {
  return (asked) => {
    const first = once(asked)
    const at = asked.at + hedgeMs
    if (first.end.at < at) return first
    if (first.end.at === at) throw new Undecided('an end at the time of a hedge')
    const second = once({ ...asked, at })
    const answers = [first, second].filter(({ end }) => end.fault === undefined)
    const [one, other] = answers.toSorted((a, b) => a.end.at - b.end.at)
    if (one?.end.at === other?.end.at && one !== undefined) throw new Undecided('two answers')
    return one ?? afterBoth(first, second)
  }
}

/** A failure of both is the first one, but one that may have executed before one that has not. */
function afterBoth(...both: readonly [Answer, Answer]): Answer {
  const [one, other] = both.toSorted((a, b) => a.end.at - b.end.at)
  if (one === undefined || other === undefined) return both[0]
  if (one.end.at === other.end.at && one.end.at < Number.POSITIVE_INFINITY) {
    throw new Undecided('two failures of a hedge')
  }
  const isFirst = one.end.fault?.executed === 'maybe'
  return { responses: [], end: { ...(isFirst ? one : other).end, at: other.end.at } }
}

/** Makes the call of something without rules: only what cannot have run is tried again, and an ensemble leaves that to its steps. */
export function withoutRules(o: Callers, callee: CalleeSketch): Once {
  return tryWithoutRules(callee, target(o, callee))
}

function tryWithoutRules(callee: CalleeSketch, once: Once): Once {
  if (callee.kind === 'ensemble') return once
  return (asked) => tryAgain(asked, { once, delayMs: delayWithoutRule, isAllowed: () => true })
}

function delayWithoutRule(fault: Fault, tries: number): number | undefined {
  return isTransient(fault) ? [0, 10][tries - 1] : undefined
}

type Callers = Pick<StepCallSketch, 'o' | 'ensemble'>

function target({ o, ensemble }: Callers, callee: CalleeSketch): Once {
  return (asked) =>
    callee.kind === 'model' ? interpretModel(o, callee, asked) : ensemble(o, callee, asked)
}

function tryAgain(
  asked: Asked,
  o: {
    readonly once: Once
    readonly delayMs: (fault: Fault, tries: number) => number | undefined
    readonly isAllowed: (at: number) => boolean
  },
): Answer {
  let { at } = asked
  for (let tries = 1; ; tries += 1) {
    const answer = o.once({ ...asked, at })
    const { fault } = answer.end
    if (fault === undefined) return answer
    // Once something has answered, or was tried again within, nothing is tried again.
    const isFinal = answer.responses.length > 0 || fault.wasRetried
    const delayMs = isFinal ? undefined : o.delayMs(fault, tries)
    if (delayMs === undefined || !o.isAllowed(answer.end.at)) {
      const last = tries > 1 ? { ...fault, wasRetried: true } : fault
      return { ...answer, end: { ...answer.end, fault: last } }
    }
    at = answer.end.at + delayMs
  }
}

function isTransient({ executed, reason }: Fault): boolean {
  return executed === 'no' && ['STEP_UNAVAILABLE', 'ENGINE_STOPPED'].includes(reason)
}

/** The words by which rules name failures. */
const CODES: Readonly<Record<string, string>> = {
  ENGINE_FAILED: 'INTERNAL',
  STEP_UNAVAILABLE: 'UNAVAILABLE',
  STEP_LOST: 'UNAVAILABLE',
  ENGINE_STOPPED: 'UNAVAILABLE',
  QUEUE_FULL: 'RESOURCE_EXHAUSTED',
  OVERLOADED: 'RESOURCE_EXHAUSTED',
  INVALID_REQUEST: 'INVALID_ARGUMENT',
}

/** Decides whether a failure is tried again, and after how long. Waits that are random are half of their longest. */
function delayByRule(
  { retry, mayRunTwice = false }: StepSketch,
  fault: Fault,
  tries: number,
): number | undefined {
  if (retry === undefined || tries > retry.maxRetries) return undefined
  const { executed, reason, step } = fault
  const hasNotRun = executed === 'no' || (reason === 'QUEUE_FULL' && step === undefined)
  const isNamed = retry.retryOn.includes(CODES[reason] ?? '') && (mayRunTwice || hasNotRun)
  if (!isNamed && !isTransient(fault)) return undefined
  return Math.min(1000, retry.backoffMs * 2 ** (tries - 1)) / 2
}

/** Computes one execution of a model. */
function interpretModel(o: Interpretation, model: ModelSketch, asked: Asked): Answer {
  const { responses, end } = o.execute(model, asked)
  if (end.afterMs === Number.POSITIVE_INFINITY) {
    return failed(end.afterMs, faultOf('', 'it never ends'))
  }
  const { inputs, parameters, outputs, at } = asked
  const isWanted = ([name]: readonly [string, unknown]): boolean =>
    outputs.length === 0 || outputs.includes(name)
  const { failure } = end
  const fault = failure && {
    ...faultOf(failure.reason, failureText(model)),
    executed: failure.executed,
  }
  return {
    responses: responses.map(({ afterMs, index }) => ({
      at: at + afterMs,
      outputs: new Map([...answerOf(model, { inputs, parameters }, index)].filter(isWanted)),
    })),
    end: { at: at + end.afterMs, ...(fault !== undefined && { fault }) },
  }
}
