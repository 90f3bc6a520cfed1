import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import type { EnsembleRules } from './ensemble-rules.ts'

/** By step, the indexes of the steps that it waits for, for data or by `dependsOn`. */
type Waits = readonly (readonly number[])[]

/**
 * Finds steps that wait for one another, counting what they read and what `dependsOn` says together.
 *
 * @param dependsOn - by step, indexes of steps; every index exists.
 * @returns the steps of one such cycle in the order in which they wait, the first of them least; undefined if there is none.
 */
export function findStepCycle(
  config: ModelConfig,
  dependsOn: readonly (readonly number[])[],
): readonly number[] | undefined {
  const waits = findReads(config).map((reads, i) => [...reads, ...(dependsOn[i] ?? [])])
  const open = new Set(waits.keys())
  for (let size = -1; size !== open.size; ) {
    size = open.size
    for (const step of open) if (!waits[step]?.some((other) => open.has(other))) open.delete(step)
  }
  const [start] = open
  return start === undefined ? undefined : followCycle(waits, open, start)
}

/** Every open step waits for an open one, so that the way closes. */
function followCycle(waits: Waits, open: ReadonlySet<number>, start: number): readonly number[] {
  const way: number[] = []
  let step = start
  while (!way.includes(step)) {
    way.push(step)
    step = waits[step]?.find((other) => open.has(other)) ?? step
  }
  const cycle = way.slice(way.indexOf(step))
  const least = cycle.indexOf(Math.min(...cycle))
  return [...cycle.slice(least), ...cycle.slice(0, least)]
}

/** By step, the steps that make what it reads. Whoever writes onto an ensemble input makes nothing that steps read. */
function findReads(config: ModelConfig): Waits {
  const steps = config.ensemble_scheduling?.step ?? []
  const inputs = new Set(config.input.map((input) => input.name))
  const makers = new Map<string, number>()
  for (const [index, step] of steps.entries()) {
    for (const tensor of Object.values(step.output_map)) {
      if (!inputs.has(tensor)) makers.set(tensor, index)
    }
  }
  return steps.map((step) =>
    Object.values(step.input_map).flatMap((tensor) => {
      const maker = makers.get(tensor)
      return maker === undefined ? [] : [maker]
    }),
  )
}

/**
 * Checks `dependsOn` against the graph.
 *
 * Every other step either comes before a decoupled one or follows its responses one by one, and it may have to wait for those
 * that follow: nobody can wait for its end.
 *
 * @param steps - decoupled or not, in the config's order.
 * @throws ServeError ENSEMBLE_INVALID, with `details.cycle` if steps would wait for one another.
 */
export function checkDependencies(
  config: ModelConfig,
  rules: EnsembleRules,
  steps: readonly { readonly decoupled: boolean }[],
): void {
  const { dependsOn, stepNames } = rules
  const nameOf = (step: number): string => stepNames[step] ?? String(step)
  const cycle = findStepCycle(config, dependsOn)
  if (cycle !== undefined) {
    const names = [...cycle, ...cycle.slice(0, 1)].map(nameOf).join(' -> ')
    const text = `in ensemble ${config.name}, steps wait for one another: ${names}`
    throw invalid(config, text, { cycle: names })
  }
  for (const [index, list] of dependsOn.entries()) {
    const decoupled = list.find((step) => steps[step]?.decoupled)
    if (decoupled === undefined) continue
    const text = `in ensemble ${config.name}, step '${nameOf(index)}' depends on '${nameOf(decoupled)}', whose model is decoupled: what follows it runs for each of its responses and cannot wait for the last`
    throw invalid(config, text, { step: nameOf(index) })
  }
}

function invalid(config: ModelConfig, text: string, details: Record<string, string>): ServeError {
  return new ServeError('ENSEMBLE_INVALID', text, {
    details: { ensemble: config.name, ...details },
  })
}
