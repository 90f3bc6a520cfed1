import type { EnsembleStep, ModelConfig } from '@tutti/model-config'
import { type Graph, type GraphStep, type Source, tensorsOf } from '../graph.ts'
import type { EnsemblePlan } from '../plan/ensemble-plan.ts'
import { planEnsemble } from '../plan/plan-ensemble.ts'
import { readConfigGraph } from '../read/read-config.ts'
import { ensembleConfig, modelConfig, stepConfig } from './configs.ts'
import type { Symbols } from './ensemble-driver.ts'

/** Numbers in [0, bound) that depend on the seed alone. */
export type Dice = (bound: number) => number

export function dice(seed: number): Dice {
  let state = seed >>> 0
  return (bound) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound
  }
}

export type RandomEnsemble = ReturnType<typeof randomEnsemble>

interface Draft {
  readonly steps: EnsembleStep[]
  readonly models: Map<string, ModelConfig>
  readonly consumed: Set<string>
}

/**
 * Draws a valid ensemble: stretches of a random graph, each closed by a decoupled step that reads whatever the stretch
 * leaves unread.
 *
 * @param o.hasDependencies - the steps have names, and some wait for others.
 * @param o.hasConditions - some steps are skipped, and tensors are absent: some inputs are required, some the first of two tensors.
 */
export function randomEnsemble(
  seed: number,
  decoupledSteps: number,
  o: { readonly hasDependencies?: boolean; readonly hasConditions?: boolean } = {},
) {
  const roll = dice(seed)
  const draft: Draft = { steps: [], models: new Map(), consumed: new Set() }
  const inputs = Array.from({ length: 1 + roll(3) }, (_, i) => `in${i}`)
  let tensors = inputs
  for (let i = 0; i < decoupledSteps; i += 1) {
    tensors = addStretch(draft, roll, tensors, roll(4))
    tensors = addStep(draft, roll, unread(draft, tensors), true)
  }
  tensors = addStretch(draft, roll, tensors, (decoupledSteps === 0 ? 1 : 0) + roll(5))
  const passed = inputs.filter((name) => draft.consumed.has(name))
  const outputs = tensors.filter((name) =>
    draft.consumed.has(name) ? roll(4) === 0 : !inputs.includes(name),
  )
  const config = ensembleConfig({
    name: 'E',
    input: passed.map((name) => ({ name, optional: roll(3) === 0 })),
    output: outputs.map((name) => ({ name })),
    steps: draft.steps,
  })
  const lookup = (name: string): { config: ModelConfig; readyVersions: number[] } | undefined => {
    const model = draft.models.get(name)
    return model && { config: model, readyVersions: [1] }
  }
  const written = readConfigGraph(config)
  const ordered = o.hasDependencies === true ? addDependencies(draft, written, roll) : written
  const graph = o.hasConditions === true ? addConditions(draft, ordered, roll) : ordered
  const plan = planEnsemble({ config, graph, lookup })
  return {
    config,
    plan,
    modelOf: (name: string) => draft.models.get(name),
    /** Makes the answer of a step: one response, or any number if it is decoupled. Withheld outputs are absent. */
    answer: (step: number, inputs: Symbols) => answer(plan, seed, step, inputs),
    /** Tells whether the condition of a step does not hold for what it reads. */
    skips: (step: number, inputs: Symbols) => skips(plan, seed, step, inputs),
  }
}

/** Steps depend on some before them that may end. */
function addDependencies({ models }: Draft, graph: Graph, roll: Dice): Graph {
  const names = graph.steps.map(({ model }) => model)
  const isEnding = (name: string): boolean =>
    models.get(name)?.model_transaction_policy?.decoupled !== true
  const steps = graph.steps.map((step, index) => ({
    ...step,
    name: `step ${step.model}`,
    after: [...names.slice(0, index).keys()].filter(
      (other) => isEnding(names[other] ?? '') && roll(3) === 0,
    ),
  }))
  return { ...graph, steps }
}

/** Some steps have a condition. Inputs may be the first of two tensors, of which the other is always there. */
function addConditions(draft: Draft, graph: Graph, roll: Dice): Graph {
  const conditional = graph.steps.map(() => roll(3) === 0)
  const isConditional = (source: Source): boolean =>
    source.kind === 'made' && conditional[source.step] === true
  const steps = graph.steps.map((step, index): GraphStep => {
    const tensors = step.inputs.flatMap(({ from }) => tensorsOf(from))
    const inputs = step.inputs.map(({ name, from }) => {
      const other = tensors[roll(tensors.length)]
      const isFirst = isConditional(from) && other !== undefined && roll(2) === 0
      const first: Source = {
        kind: 'firstOf',
        tensors: [...tensorsOf(from), ...(isFirst ? [other] : [])],
      }
      return { name, from: isFirst ? first : from }
    })
    makeRequired(draft, step.model, roll)
    const [control] = tensors
    if (conditional[index] !== true || control === undefined) return { ...step, inputs }
    return {
      ...step,
      inputs,
      when: 'tensors["c"][0] > 0.0',
      controls: [{ name: 'c', from: control }],
    }
  })
  const outputs = graph.outputs.map((output) => ({ ...output, optional: true as const }))
  return { ...graph, steps, outputs }
}

function makeRequired({ models }: Draft, name: string, roll: Dice): void {
  const model = models.get(name)
  if (model === undefined) return
  const input = model.input.map((one) => ({ ...one, optional: roll(2) === 0 }))
  models.set(name, { ...model, input })
}

function skips(plan: EnsemblePlan, seed: number, index: number, inputs: Symbols): boolean {
  const step = plan.steps[index]
  if (step?.when === undefined) return false
  return dice(hashOf(seed + 1, `${step.name} ${JSON.stringify(inputs)}`))(2) === 0
}

function hashOf(seed: number, text: string): number {
  let hash = seed
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash, 31) + text.charCodeAt(i)
  return hash
}

function unread(draft: Draft, tensors: readonly string[]): readonly string[] {
  const left = tensors.filter((name) => !draft.consumed.has(name))
  return left.length > 0 ? left : tensors.slice(-1)
}

function addStretch(draft: Draft, roll: Dice, from: string[], length: number): string[] {
  const tensors = [...from]
  for (let i = 0; i < length; i += 1) {
    const read = Array.from({ length: 1 + roll(3) }, () => tensors[roll(tensors.length)] ?? '')
    tensors.push(...addStep(draft, roll, read, false))
  }
  return tensors
}

function addStep(draft: Draft, roll: Dice, read: readonly string[], decoupled: boolean): string[] {
  const index = draft.steps.length
  const name = `m${index}`
  const made = Array.from({ length: 1 + roll(2) }, (_, i) => `t${index}_${i}`)
  const inputs = read.map((tensor, i): [string, string] => [`i${i}`, tensor])
  const outputs = made.map((tensor, i): [string, string] => [`o${i}`, tensor])
  for (const tensor of read) draft.consumed.add(tensor)
  draft.steps.push(stepConfig(name, Object.fromEntries(inputs), Object.fromEntries(outputs)))
  draft.models.set(
    name,
    modelConfig({
      name,
      input: inputs.map(([input]) => ({ name: input, optional: true })),
      output: outputs.map(([output]) => ({ name: output })),
      model_transaction_policy: { decoupled },
    }),
  )
  return made
}

function answer(plan: EnsemblePlan, seed: number, index: number, inputs: Symbols): Symbols[] {
  const step = plan.steps[index]
  if (step === undefined) return []
  const read = Object.entries(inputs).map(([name, value]) => `${name}:${value}`)
  const call = `${step.name}(${read.join(',')})`
  const roll = dice(hashOf(seed, call))
  const count = step.decoupled ? roll(4) : 1
  return Array.from({ length: count }, (_, k) => {
    const kept = step.outputs.filter(() => roll(6) > 0)
    return Object.fromEntries(kept.map(({ name }) => [name, `${call}[${k}].${name}`]))
  })
}
