import { keyOf, type Script, scriptOf, type Texts, type Values } from './scripted-models.ts'
import type { EnsembleSketch, GraphSketch, ModelSketch, StepSketch } from './sketch.ts'

/*
 * The values with which the interpreter of drawn graphs computes. It knows no events: each part of a graph is computed from its begin to
 * its end, with the times of both, and is taken back as far as it comes after the end of the part around it.
 */

/** A failure as it is wanted. */
export interface Fault {
  readonly reason: string
  /** Patterns of its text, any of which will do: `*` stands for any characters. */
  readonly texts: readonly string[]
  readonly executed: 'no' | 'maybe'
  readonly wasRetried: boolean
  /** The innermost ensemble where it happened, and its step with the items. */
  readonly ensemble?: string
  readonly step?: string
  readonly model?: string
  readonly item?: string
  /** Items and iterations of the steps around the ensemble, the outermost first. */
  readonly within?: string
  /** Patterns of the failure before that of a fallback. */
  readonly firstErrors?: readonly string[]
}

/** The end of a call. */
export interface End {
  readonly at: number
  readonly fault?: Fault
}

/** The responses to a call, and its end. */
export interface Answer {
  readonly responses: readonly { readonly at: number; readonly outputs: Values }[]
  readonly end: End
}

/** A request as it reaches a callee. */
export interface Asked {
  readonly inputs: Values
  readonly parameters: Texts
  /** Empty for all. */
  readonly outputs: readonly string[]
  readonly at: number
}

/** Computes a request to an ensemble. */
export type InterpretEnsemble = (
  o: Interpretation,
  ensemble: EnsembleSketch,
  asked: Asked,
) => Answer

/** Computes one call of what a step, or its fallback, runs. */
export type Once = (asked: Asked) => Answer

/** A call of a step. */
export interface StepCallSketch {
  readonly o: Interpretation
  readonly step: StepSketch
  readonly asked: Asked
  /** Tensors that decide how often it runs, by their names in the ensemble. */
  readonly controls: Values
  readonly ensemble: InterpretEnsemble
}

/** Thrown where the order of things decides that happen at the same time. */
export class Undecided extends Error {}

/** Something that happened, by what was computed. */
type Entry = { readonly at: number } & (
  | { readonly kind: 'execution'; readonly key: string; readonly isFlaky: boolean }
  /** A call, or a further attempt, of a step that has a budget. */
  | {
      readonly kind: 'call' | 'retry'
      readonly step: StepSketch
      /** Whether its place among the calls of the step is open, or, at the very end of a call around it, whether it was made. */
      readonly isUncertain: boolean
    }
)

/** The executions, calls and retries of all requests to a graph so far, in the order in which they were computed. */
export class Interpretation {
  readonly graph: GraphSketch
  #entries: Entry[] = []
  /** Whether it is open if some of the executions began. */
  isOpen = false
  /** How many maps are around what is computed, in which several calls are open at a time. */
  parallel = 0

  constructor(graph: GraphSketch) {
    this.graph = graph
  }

  /** Counts the executions, by what they read. */
  get executions(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { key } of executionsIn(this.#entries)) counts.set(key, (counts.get(key) ?? 0) + 1)
    return counts
  }

  /** Begins an execution. @returns its script. */
  execute(model: ModelSketch, { inputs, parameters, at }: Asked): Script {
    const key = keyOf(model, inputs, parameters)
    const before = executionsIn(this.#entries).filter((one) => one.key === key)
    const isFlaky = model.reliability === 'flaky'
    if (isFlaky && before.some((one) => one.at >= at)) throw new Undecided('one model twice')
    this.#entries.push({ kind: 'execution', key, at, isFlaky })
    return scriptOf(this.graph, model, key, before.length)
  }

  /** Marks what is there. */
  mark(): number {
    return this.#entries.length
  }

  /** Takes back what began after a time, between two marks. */
  cut(from: number, at: number, to: number = this.#entries.length): void {
    const part = this.#entries.slice(from, to)
    const last = executionsIn(part).filter((one) => one.at === at)
    if (last.length > 0) this.isOpen = true
    if (last.some(({ isFlaky }) => isFlaky)) throw new Undecided('an execution at the end')
    const kept = part
      .filter((one) => one.at <= at)
      .map((one) => (one.kind === 'retry' && one.at === at ? { ...one, isUncertain: true } : one))
    this.#entries = [...this.#entries.slice(0, from), ...kept, ...this.#entries.slice(to)]
  }

  /** Says that what is behind a failure goes on for a while, since a mark and a time. */
  loosen(from: number, at: number): void {
    this.isOpen = true
    const later = this.#entries.slice(from).filter((one) => one.at >= at)
    const isMissed = later.some((one) => one.kind !== 'execution' || one.isFlaky)
    if (isMissed) throw new Undecided('behind a failure')
  }

  /** Counts a call of a step that has a budget of retries. */
  called(step: StepSketch, at: number): void {
    this.#entries.push({ kind: 'call', step, at, isUncertain: this.parallel > 0 })
  }

  /** Takes a retry from the budget of a step. @returns whether there was one left. */
  retry(step: StepSketch, at: number): boolean {
    this.#entries.push({ kind: 'retry', step, at, isUncertain: this.parallel > 0 })
    const own = this.#entries.flatMap((one) =>
      one.kind !== 'execution' && one.step === step ? [one] : [],
    )
    // Ten are always there. Beyond them the order of all calls counts.
    if (own.filter(({ kind }) => kind === 'retry').length <= 10) return true
    if (own.some(({ isUncertain }) => isUncertain)) throw new Undecided('a budget')
    return isLeft(own, step.retry?.budgetPercent ?? 0)
  }
}

/** Goes through the calls and retries of a step. @returns whether the last of the retries was allowed. */
function isLeft(
  entries: readonly { readonly kind: 'call' | 'retry'; readonly at: number }[],
  percent: number,
): boolean {
  let left = 1000
  let since = 0
  let isAllowed = true
  for (const { kind, at } of entries) {
    if (kind === 'call') {
      left = Math.min(1000, left + percent)
      continue
    }
    left = Math.min(1000, left + (at - since) / 10)
    since = at
    // Sums of fractions differ in their last digits.
    if (Math.abs(left - 100) < 1e-6) throw new Undecided('the last of a budget')
    isAllowed = left >= 100
    if (isAllowed) left -= 100
  }
  return isAllowed
}

function executionsIn(entries: readonly Entry[]) {
  return entries.flatMap((one) => (one.kind === 'execution' ? [one] : []))
}

export function failed(at: number, fault: Fault): Answer {
  return { responses: [], end: { at, fault } }
}

export function answered(at: number, outputs: Values): Answer {
  return { responses: [{ at, outputs }], end: { at } }
}

export function faultOf(reason: string, text: string, o: Partial<Fault> = {}): Fault {
  return { reason, texts: [text], executed: 'maybe', wasRetried: false, ...o }
}

export function withPrefix(fault: Fault, prefix: string): Fault {
  return { ...fault, texts: fault.texts.map((text) => prefix + text) }
}

/** Says in which items or iteration of a step a failure was. @param name - of the step, with the items. */
export function located(fault: Fault, name: string, part: string): Fault {
  const named = withPrefix(fault, `${name}: `)
  if (fault.ensemble === undefined) return { ...named, item: part }
  return { ...named, within: `[${part}]${fault.within ?? ''}` }
}

/** Ends an answer where a time is over. */
export function endAt(o: Interpretation, mark: number, answer: Answer, limit: End): Answer {
  const { responses, end } = answer
  if (end.at < limit.at) return answer
  if (end.at === limit.at || responses.some(({ at }) => at === limit.at)) {
    throw new Undecided('the end of time')
  }
  o.cut(mark, limit.at)
  return { responses: responses.filter(({ at }) => at < limit.at), end: limit }
}

/** Takes the one response of a call that answers once, whenever it ends. */
export function onlyOf({ responses, end }: Answer): {
  readonly response?: Values
  readonly fault?: Fault | undefined
  readonly end: number
} {
  const [only] = responses
  if (only !== undefined) return { response: only.outputs, end: only.at }
  return { fault: end.fault, end: end.at }
}

/** Finds the first of several ends that are failures. */
export function firstFailure(ends: readonly End[]): End | undefined {
  const faults = ends.filter(({ fault }) => fault !== undefined)
  const at = Math.min(...faults.map((one) => one.at))
  const first = faults.filter((one) => one.at === at)
  if (first.length > 1) throw new Undecided('two failures')
  return first[0]
}
