import type { EnsemblePlan } from '../plan/ensemble-plan.ts'
import type { Symbols } from './ensemble-driver.ts'
import type { RandomEnsemble } from './random-ensemble.ts'

type Values = ReadonlyMap<number, string>

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
    outputs.map((output) => output.tensor),
  )
  /** `step(inputs)` of everything that should run. */
  const invocations: string[] = []
  /** One per response, in the order of a run in which everything answers in order. */
  const responses: Symbols[] = []
  const given = plan.inputs.flatMap(({ name, tensor }): [number, string][] => {
    const value = inputs[name]
    return value === undefined ? [] : [[tensor, value]]
  })

  function follow(values: Values, label: number): void {
    let known = values
    const inner: (() => void)[] = []
    // Steps of random ensembles stand in the order in which they can run.
    for (const step of plan.steps) {
      if (step.label !== label || !needed.has(step.index)) continue
      const read = gather(plan, step.index, known)
      invocations.push(invocationText(step.name, read))
      for (const response of ensemble.answer(step.index, read)) {
        const made = step.outputs.flatMap(({ name, tensor }): [number, string][] =>
          response[name] === undefined ? [] : [[tensor, response[name]]],
        )
        if (step.decoupled) inner.push(() => follow(new Map(made), step.index + 1))
        else known = new Map([...known, ...made])
      }
    }
    for (const continued of inner) continued()
    if (label !== (plan.tensors[outputs[0]?.tensor ?? -1]?.label ?? 0)) return
    const response = outputs.flatMap(({ name, tensor }) => {
      const value = known.get(tensor)
      return value === undefined ? [] : [[name, value]]
    })
    responses.push(Object.fromEntries(response))
  }

  follow(new Map(given), 0)
  return { responses, invocations }
}

export function invocationText(step: string, inputs: Symbols): string {
  return `${step}(${JSON.stringify(inputs)})`
}

function gather(plan: EnsemblePlan, step: number, values: Values): Symbols {
  const inputs = plan.steps[step]?.inputs.flatMap(({ name, tensor }) => {
    const value = values.get(tensor)
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
    for (const input of plan.steps[step]?.inputs ?? []) visit(input.tensor)
  }
  for (const tensor of tensors) visit(tensor)
  return needed
}
