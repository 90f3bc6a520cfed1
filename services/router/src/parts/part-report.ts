import { type EnsemblePlan, fallbackOf } from '@tutti/graph'
import type { StepCallTimes } from '@tutti/telemetry'
import { STEP_COUNTS, type StepReport, type StepTimes } from '@tutti/tensor'
import type { Place } from '../calls/replica-counts.ts'
import type { RequestDependencies } from '../calls/request-dependencies.ts'

/** Calls of one step whose times are told one by one; those of a step that runs for many items may be thousands. */
const MAX_CALLS = 256

const NAMES = new WeakMap<EnsemblePlan, readonly string[]>()

type CallReport = StepReport['calls'][number]
type Counted = Pick<RequestDependencies, 'metrics' | 'replicaCounts'>

interface Draft extends StepReport {
  readonly calls: CallReport[]
  more: number
  failures: number
  readonly counts: Record<string, number>
}

/** Takes down what a router would count of the steps of one request. */
export class PartReporter implements Counted {
  readonly #steps = new Map<string, Draft>()
  readonly metrics: Counted['metrics'] = {
    observeStep: ({ step, model }, times, elapsedNs) =>
      this.#observe({ step, model }, times, elapsedNs),
    countStep: ({ step, model }, what, count) => {
      const { counts } = this.#of(step, model)
      counts[what] = (counts[what] ?? 0) + (count ?? 1)
    },
  }
  readonly replicaCounts: Counted['replicaCounts'] = {
    isCounting: true,
    answered: ({ step, target }) => {
      const { calls } = this.#of(step, target.entry.name)
      const last = calls.at(-1)
      if (last !== undefined) calls[calls.length - 1] = { ...last, isAnswer: true }
    },
    failed: ({ step, target }, _replica, { code }) => {
      if (code !== 'CANCELLED') this.#of(step, target.entry.name).failures += 1
    },
  }

  get steps(): readonly StepReport[] {
    return [...this.#steps.values()]
  }

  #observe(
    { step, model }: Pick<StepReport, 'step' | 'model'>,
    times: StepTimes,
    elapsedNs: number,
  ): StepCallTimes {
    const draft = this.#of(step, model)
    const { queueNs } = times
    const computeNs = times.computeInputNs + times.computeInferNs + times.computeOutputNs
    if (draft.calls.length < MAX_CALLS) {
      draft.calls.push({ queueNs, computeNs, elapsedNs: Math.round(elapsedNs), isAnswer: false })
    } else draft.more += 1
    return { queueNs, computeNs, transferNs: Math.max(0, elapsedNs - queueNs - computeNs) }
  }

  #of(step: string, model: string): Draft {
    const key = nameOf(step, model)
    const known = this.#steps.get(key)
    if (known !== undefined) return known
    const draft: Draft = { step, model, calls: [], more: 0, failures: 0, counts: {} }
    this.#steps.set(key, draft)
    return draft
  }
}

/**
 * Counts what a replica reports of the steps of a part, as if each had been called from here. It is not trusted: a step that the part
 * does not have, or a second report of one, is not counted.
 *
 * @param o.plan - of the part.
 */
export function countReport(
  { metrics, replicaCounts }: Counted,
  steps: readonly StepReport[],
  o: {
    readonly plan: EnsemblePlan
    readonly ensemble: string
    readonly chosen: Place
    readonly traceId: string | undefined
  },
): void {
  const { plan, ensemble, chosen, traceId } = o
  const open = new Set(namesOf(plan))
  for (const { step, model, calls, more, failures, counts } of steps) {
    // Each comes once.
    if (!open.delete(nameOf(step, model))) continue
    const labels = { ensemble, step, model }
    const call = { ensemble, step, target: { entry: { name: model } } }
    const observe = ({ queueNs, computeNs, elapsedNs, isAnswer }: CallReport): void => {
      const times = { queueNs, computeInputNs: 0, computeInferNs: computeNs, computeOutputNs: 0 }
      const taken = metrics.observeStep(labels, { ...times, transferNs: 0 }, elapsedNs, traceId)
      if (isAnswer && replicaCounts.isCounting) replicaCounts.answered(call, chosen, taken)
    }
    for (const one of calls) observe(one)
    const [first] = calls
    // Those that are not told one by one count as their mean.
    if (first !== undefined && more > 0) {
      const mean = meanOf(calls)
      for (let i = 0; i < more; i += 1) observe(mean)
    }
    for (let i = 0; i < failures && replicaCounts.isCounting; i += 1) {
      replicaCounts.failed(call, chosen.replica.address.replica, { code: 'INTERNAL' })
    }
    for (const what of STEP_COUNTS) {
      const count = counts[what] ?? 0
      if (count > 0) metrics.countStep(labels, what, count)
    }
  }
}

/** Names a step together with what it runs. */
function nameOf(step: string, model: string): string {
  return JSON.stringify([step, model])
}

/** Lists the names of the steps of a part: each with what it runs, and with what its fallback runs. */
function namesOf(plan: EnsemblePlan): readonly string[] {
  const known = NAMES.get(plan)
  if (known !== undefined) return known
  const names = plan.steps.flatMap(({ name, model, builtin, call }) => {
    const called = [builtin?.config.name ?? model, fallbackOf(call)?.model]
    return called.flatMap((one) => (one === undefined ? [] : nameOf(name, one)))
  })
  NAMES.set(plan, names)
  return names
}

function meanOf(calls: readonly CallReport[]): CallReport {
  const mean = (of: (call: CallReport) => number): number =>
    calls.reduce((sum, call) => sum + of(call), 0) / calls.length
  return {
    queueNs: mean(({ queueNs }) => queueNs),
    computeNs: mean(({ computeNs }) => computeNs),
    elapsedNs: mean(({ elapsedNs }) => elapsedNs),
    isAnswer: true,
  }
}
