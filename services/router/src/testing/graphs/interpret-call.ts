import { evaluate } from './interpret-condition.ts'
import { interpretMap } from './interpret-map.ts'
import { withoutRules, withRetries } from './interpret-retries.ts'
import {
  type Answer,
  type Asked,
  answered,
  endAt,
  type Fault,
  failed,
  faultOf,
  located,
  type Once,
  onlyOf,
  type StepCallSketch,
} from './interpretation.ts'
import type { Values } from './scripted-models.ts'
import { type CalleeSketch, type LoopSketch, readsOf, type StepSketch } from './sketch.ts'

/** Computes a step that runs, with all that is around its call. */
export function interpretStep(call: StepCallSketch): Answer {
  const { step, asked } = call
  const { onError, callee, timeoutMs } = step
  const own = { timeoutMs, whose: '' }
  const answer = within(call, own, asked, (one) =>
    interpretRepeat(call, callee, { asked: one, once: withRetries(call) }),
  )
  const { fault, at } = answer.end
  // A step that has answered gets no other answer.
  const isFinal = answer.responses.length > 0 || at === Number.POSITIVE_INFINITY
  if (onError === undefined || fault === undefined || isFinal) return answer
  if ('values' in onError) return answered(at, onError.values)
  const { fallback } = onError
  const rules = { timeoutMs: onError.timeoutMs, whose: 'the fallback of ' }
  const second = within(call, rules, { ...asked, at }, (one) =>
    interpretRepeat(call, fallback, { asked: one, once: withoutRules(call, fallback) }),
  )
  if (second.end.fault === undefined) return second
  const firstErrors = fault.texts.map((text) => `${fault.reason}: ${text}`)
  const last = { model: fallback.name, firstErrors, ...second.end.fault }
  return { responses: second.responses, end: { at: second.end.at, fault: last } }
}

/** Bounds the time of a call. */
function within(
  { o, step }: StepCallSketch,
  { timeoutMs, whose }: { readonly timeoutMs: number | undefined; readonly whose: string },
  asked: Asked,
  compute: Once,
): Answer {
  if (timeoutMs === undefined) return compute(asked)
  const mark = o.mark()
  const answer = compute(asked)
  const at = asked.at + timeoutMs
  const what = answer.responses.some((one) => one.at < at) ? 'no last response' : 'no answer'
  const text = `${whose}step '${step.name}': ${what} within its timeout of ${timeoutMs} ms`
  return endAt(o, mark, answer, { at, fault: faultOf('STEP_TIMEOUT', text) })
}

function interpretRepeat(
  call: StepCallSketch,
  callee: CalleeSketch,
  o: { readonly asked: Asked; readonly once: Once },
): Answer {
  const { forEach, loop } = call.step
  if (forEach !== undefined) return interpretMap({ call, forEach, callee, ...o })
  return loop === undefined ? o.once(o.asked) : interpretLoop({ call, loop, ...o })
}

interface Looping {
  readonly call: StepCallSketch
  readonly loop: LoopSketch
  readonly asked: Asked
  readonly once: Once
}

function interpretLoop(o: Looping): Answer {
  const { call, loop, asked, once } = o
  const { name } = call.step
  const own = ownReads(call.step)
  const carried = loop.carry.map(({ output }) => output)
  const outputs = [...new Set([...asked.outputs, ...own, ...carried])]
  let { inputs, at } = asked
  for (let iteration = 1; ; iteration += 1) {
    const { response = new Map(), fault, end } = onlyOf(once({ ...asked, inputs, outputs, at }))
    const next = fault ?? follow(o, { inputs, response, isLast: iteration >= loop.maxIterations })
    at = end
    if (next === undefined) {
      return answered(at, new Map([...response].filter(([one]) => asked.outputs.includes(one))))
    }
    if ('reason' in next) {
      const item = String(iteration)
      return failed(at, located(next, `step '${name}', iteration ${item}`, item))
    }
    inputs = next
  }
}

/** Makes the inputs of the next iteration; undefined if there is none. */
function follow(
  { call, loop, asked }: Looping,
  o: { readonly inputs: Values; readonly response: Values; readonly isLast: boolean },
): Values | Fault | undefined {
  if (o.isLast) return undefined
  const { step, controls } = call
  const { until, carry } = loop
  if (until !== undefined) {
    const made = [...o.response].map(([name, value]) => [`${step.name}.${name}`, value] as const)
    const tensors = new Map([...controls, ...made])
    const isEnd = evaluate(until, { tensors, parameters: asked.parameters })
    if (isEnd === undefined) return noValue(step.name)
    if (isEnd) return undefined
  }
  const next = new Map(o.inputs)
  for (const { input, output } of carry) {
    const value = o.response.get(output)
    if (value === undefined) {
      const text = `output '${output}' is absent, want it for '${input}'`
      return faultOf('ITEMS_INVALID', text)
    }
    next.set(input, value)
  }
  return next
}

/** Makes the fault of a condition that has no value. */
export function noValue(step: string): Fault {
  return faultOf('CONDITION_FAILED', `the condition of step '${step}' has no value: *`, { step })
}

/** Lists the outputs of a step that its own loop reads. */
function ownReads({ name, loop }: StepSketch): readonly string[] {
  const own = readsOf(loop?.until).filter((ref) => ref.startsWith(`${name}.`))
  return own.map((ref) => ref.slice(name.length + 1))
}
