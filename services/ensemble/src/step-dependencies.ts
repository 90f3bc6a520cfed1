import type { EnsembleRules } from '@tutti/api'
import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import type { PlanStep, PlanTensor } from './ensemble-plan.ts'
import { settle } from './graph-walks.ts'

/**
 * Finds steps that wait for one another.
 *
 * @param waits - for each step, the indexes of the steps that it waits for, to read their outputs or by `dependsOn`.
 * @returns the indexes of the steps of one cycle, in the order in which they wait, from the least index; undefined if there is
 *   no cycle.
 */
export function findStepCycle(
  waits: readonly (readonly number[])[],
): readonly number[] | undefined {
  const open = new Set(waits.keys())
  settle(open, (one) => !waits[one]?.some((other) => open.has(other)))
  let [step] = open
  if (step === undefined) return undefined
  // Every open step waits for an open one, so that the way closes.
  const way: number[] = []
  while (!way.includes(step)) {
    way.push(step)
    step = waits[step]?.find((other) => open.has(other)) ?? step
  }
  const cycle = way.slice(way.indexOf(step))
  const least = cycle.indexOf(Math.min(...cycle))
  return [...cycle.slice(least), ...cycle.slice(0, least)]
}

/**
 * Checks `dependsOn` against the graph.
 *
 * No step can wait for the end of a decoupled step. Every other step either runs before the decoupled one, or runs for each of
 * its responses, and the decoupled step may have to wait for the latter.
 *
 * @param steps - in the config's order.
 * @throws ServeError ENSEMBLE_INVALID, with `details.cycle` if steps would wait for one another.
 */
export function checkDependencies(
  config: ModelConfig,
  { dependsOn, stepNames }: EnsembleRules,
  steps: readonly Pick<PlanStep, 'decoupled' | 'reads'>[],
  tensors: readonly Pick<PlanTensor, 'step'>[],
): void {
  const nameOf = (step: number): string => stepNames[step] ?? String(step)
  const waits = steps.map(({ reads }, index) => [
    ...reads.flatMap((tensor) => tensors[tensor]?.step ?? []),
    ...(dependsOn[index] ?? []),
  ])
  const cycle = findStepCycle(waits)
  if (cycle !== undefined) {
    const names = [...cycle, ...cycle.slice(0, 1)].map(nameOf).join(' -> ')
    throw invalid(config, `steps wait for one another: ${names}`, { cycle: names })
  }
  for (const [index, list] of dependsOn.entries()) {
    const decoupled = list.find((step) => steps[step]?.decoupled)
    if (decoupled === undefined) continue
    const text = `step '${nameOf(index)}' depends on '${nameOf(decoupled)}', whose model is decoupled: what follows it runs for each of its responses and cannot wait for the last`
    throw invalid(config, text, { step: nameOf(index) })
  }
}

function invalid({ name }: ModelConfig, text: string, details: Record<string, string>): ServeError {
  return new ServeError('ENSEMBLE_INVALID', `in ensemble ${name}, ${text}`, {
    details: { ensemble: name, ...details },
  })
}
