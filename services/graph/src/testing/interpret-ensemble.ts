import type { EnsemblePlan, PlanStep } from '../plan/ensemble-plan.ts'
import type { Symbols } from './ensemble-driver.ts'
import type { RandomEnsemble } from './random-ensemble.ts'

/** Values of tensors; ABSENT where a step was skipped, none where one was withheld. */
type Values = ReadonlyMap<number, string | typeof ABSENT>

const ABSENT = Symbol('absent')

export type Interpretation = ReturnType<typeof interpretEnsemble>

/** Works out what a request should bring, without events: depth first and straight from the plan. */
export function interpretEnsemble(
  ensemble: RandomEnsemble,
  inputs: Symbols,
  requestedOutputs: readonly string[],
) {
  const { plan } = ensemble
  const outputs = plan.outputs.filter(
    ({ name }) => requestedOutputs.length === 0 || requestedOutputs.includes(name),
  )
  const needed = neededSteps(
    plan,
    outputs.flatMap((output) => output.tensors),
  )
  /** `step(inputs)` of everything that should run. */
  const invocations: string[] = []
  /** One per response, in the order of a run in which everything answers in order. */
  const responses: Symbols[] = []
  const given = plan.inputs.flatMap(({ name, tensors: [tensor = -1] }): [number, string][] => {
    const value = inputs[name]
    return value === undefined ? [] : [[tensor, value]]
  })

  const outputLabel = plan.tensors[outputs[0]?.tensors[0] ?? -1]?.label ?? 0

  function follow(values: Values, label: number): void {
    const known = new Map(values)
    const inner: (() => void)[] = []
    // Steps of random ensembles stand in the order in which they can run.
    for (const step of plan.steps.filter((one) => one.label === label && needed.has(one.index))) {
      const read = gather(plan, step.index, known)
      const lacks = lacksInput(step, known)
      if (!lacks) invocations.push(invocationText(step.name, read))
      if (lacks || ensemble.skips(step.index, read)) {
        if (!step.decoupled) for (const { tensor } of step.outputs) known.set(tensor, ABSENT)
        continue
      }
      for (const response of ensemble.answer(step.index, read)) {
        const made = madeBy(step, response)
        if (step.decoupled) inner.push(() => follow(new Map(made), step.index + 1))
        else for (const [tensor, value] of made) known.set(tensor, value)
      }
    }
    for (const continued of inner) continued()
    if (label !== outputLabel) return
    const response = outputs.flatMap(({ name, tensors }) => {
      const value = first(known, tensors)
      return value === undefined ? [] : [[name, value]]
    })
    responses.push(Object.fromEntries(response))
  }

  follow(new Map(given), 0)
  return { responses, invocations }
}

/** Finds the first of several values that is there. */
function first(values: Values, tensors: readonly number[]): string | undefined {
  return tensors.map((tensor) => values.get(tensor)).find((value) => typeof value === 'string')
}

function madeBy({ outputs }: PlanStep, response: Symbols): readonly (readonly [number, string])[] {
  return outputs.flatMap(({ name, tensor }): [number, string][] =>
    response[name] === undefined ? [] : [[tensor, response[name]]],
  )
}

function lacksInput({ inputs }: PlanStep, known: Values): boolean {
  return inputs.some(({ tensors, optional }) => !optional && isAbsent(known, tensors))
}

/** Tells whether none of the tensors is there because of a skipped step. */
function isAbsent(values: Values, tensors: readonly number[]): boolean {
  const found = tensors.map((tensor) => values.get(tensor))
  return found.includes(ABSENT) && !found.some((value) => typeof value === 'string')
}

export function invocationText(step: string, inputs: Symbols): string {
  return `${step}(${JSON.stringify(inputs)})`
}

function gather(plan: EnsemblePlan, step: number, values: Values): Symbols {
  const inputs = plan.steps[step]?.inputs.flatMap(({ name, tensors }) => {
    const value = first(values, tensors)
    return value === undefined ? [] : [[name, value]]
  })
  return Object.fromEntries(inputs ?? [])
}

function neededSteps(plan: EnsemblePlan, tensors: readonly number[]): ReadonlySet<number> {
  const needed = new Set<number>()
  const visit = (tensor: number): void => {
    const step = plan.tensors[tensor]?.step
    if (step === undefined) return
    needed.add(step)
    for (const read of plan.steps[step]?.reads ?? []) visit(read)
  }
  for (const tensor of tensors) visit(tensor)
  return needed
}
