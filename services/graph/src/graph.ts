import { z } from 'zod'
import { type Callee, CallRules, fallbackOf } from './call-rules.ts'

/*
 * The form in which an ensemble's graph is checked, planned, stored and shown, whatever it was written in. It is plain data. The
 * inputs, outputs and batch size of the ensemble are in its ModelConfig, as those of any model.
 */

const StepIndex = z.int().min(0)

/** Where a value comes from. */
const Source = z.discriminatedUnion('kind', [
  /** An input of the ensemble. */
  z.object({ kind: z.literal('input'), name: z.string() }),
  /** An output of the model that a step runs. */
  z.object({ kind: z.literal('made'), step: StepIndex, output: z.string() }),
  /** The name of a tensor that is not there. A graph with one is refused, with all else that is wrong with it. */
  z.object({ kind: z.literal('unknown'), name: z.string() }),
])
export type Source = Readonly<z.infer<typeof Source>>

const GraphStep = z.object({
  /** Name in errors, details and metrics. No two steps of a graph share it. */
  name: z.string().min(1),
  /** Served name of the Model or Ensemble that the step runs. */
  model: z.string(),
  /** Version of the model; -1 is the latest one that is READY. */
  version: z.int().min(-1),
  /** Inputs of the model that are fed, each once. */
  inputs: z.array(z.object({ name: z.string(), from: Source }).readonly()).readonly(),
  /** Outputs of the model that are asked for, each once, and the names that their tensors have in texts and in `ensemble_scheduling`. */
  outputs: z.array(z.object({ name: z.string(), tensor: z.string() }).readonly()).readonly(),
  /**
   * Indexes of the steps that must end before this one begins, even if it reads none of their outputs. This orders steps but makes
   * none run: a step that no requested output needs is not waited for.
   */
  after: z.array(StepIndex).readonly(),
  /** Rules for the call; absent if there are none. */
  call: CallRules.exactOptional(),
})
export type GraphStep = Readonly<z.infer<typeof GraphStep>>

export const Graph = z
  .object({
    steps: z.array(GraphStep).readonly(),
    /** The values of the ensemble's outputs, in the order of its ModelConfig. */
    outputs: z.array(z.object({ name: z.string(), from: Source }).readonly()).readonly(),
    /** Most requests in flight to one step, over all requests of the ensemble; 0 means no bound. */
    maxInFlightPerStep: z.int().min(0),
    /** The longest time for a request, in milliseconds; absent for none. A client's deadline may be sooner. */
    timeoutMs: z.int().min(1).exactOptional(),
    /** Requests that a router executes at the same time; more are refused at once. Absent for no bound. */
    maxInFlightRequests: z.int().min(1).exactOptional(),
  })
  .check(({ value, issues }) => {
    const { steps } = value
    const issue = (path: PropertyKey[], message: string) =>
      issues.push({ code: 'custom', input: value, path, message })
    for (const [i, { name, inputs, after }] of steps.entries()) {
      if (steps.findIndex((one) => one.name === name) !== i) {
        issue(['steps', i, 'name'], `got '${name}' again, want different names`)
      }
      const indexes = [
        ...after,
        ...inputs.flatMap(({ from }) => (from.kind === 'made' ? from.step : [])),
      ]
      if (indexes.some((step) => step >= steps.length)) {
        issue(['steps', i], `want steps from 0 to ${steps.length - 1}`)
      }
    }
    for (const [i, { from }] of value.outputs.entries()) {
      if (from.kind !== 'made' || from.step < steps.length) continue
      issue(
        ['outputs', i, 'from'],
        `got step ${from.step}, want steps from 0 to ${steps.length - 1}`,
      )
    }
  })
/** The graph of an ensemble. Immutable. */
export type Graph = Readonly<z.infer<typeof Graph>>

/** Returns the name of a tensor. Only a tensor that is written onto the name of an input shares it, with that input. */
export function tensorName({ steps }: Graph, source: Source): string {
  if (source.kind !== 'made') return source.name
  const made = steps[source.step]?.outputs.find(({ name }) => name === source.output)
  return made?.tensor ?? `${steps[source.step]?.name}.${source.output}`
}

/** Lists what a graph may call: the models of its steps, and those of their fallbacks. */
export function calleesOf({ steps }: Graph): readonly Callee[] {
  return [...steps, ...steps.flatMap(({ call = {} }) => fallbackOf(call) ?? [])]
}

/** Lists the names of the models that a graph may call, each once, those of its steps first. */
export function modelsOf(graph: Graph): readonly string[] {
  return [...new Set(calleesOf(graph).map(({ model }) => model))]
}
