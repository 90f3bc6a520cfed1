import { BUILTIN_HOST } from '@tutti/builtins'
import type { Json } from '@tutti/model-config'
import { z } from 'zod'
import { type Callee, CallRules, fallbackOf } from './call-rules.ts'
import { Constant } from './constant.ts'

/*
 * The form in which an ensemble's graph is checked, planned, stored and shown, whatever it was written in. It is plain data. The
 * inputs, outputs and batch size of the ensemble are in its ModelConfig, as those of any model.
 */

const StepIndex = z.int().min(0)

/** A tensor of the graph. */
const TensorSource = z.discriminatedUnion('kind', [
  /** An input of the ensemble. */
  z.object({ kind: z.literal('input'), name: z.string() }),
  /** An output of the model that a step runs. */
  z.object({ kind: z.literal('made'), step: StepIndex, output: z.string() }),
  /** The name of a tensor that is not there. A graph with one is refused, with all else that is wrong with it. */
  z.object({ kind: z.literal('unknown'), name: z.string() }),
])
export type TensorSource = Readonly<z.infer<typeof TensorSource>>

/** The first of several tensors that is there. */
const FirstOf = z.object({ kind: z.literal('firstOf'), tensors: z.array(TensorSource).readonly() })

/** Where a value comes from. */
const Source = z.discriminatedUnion('kind', [
  TensorSource,
  FirstOf,
  z.object({ kind: z.literal('constant'), constant: Constant }),
])
export type Source = Readonly<z.infer<typeof Source>>

/** Where the value of an output comes from. */
const OutputSource = z.discriminatedUnion('kind', [TensorSource, FirstOf])
export type OutputSource = Readonly<z.infer<typeof OutputSource>>

/** Runs a step for each item. */
const ForEach = z.object({
  /** Inputs of the model that are cut along axis 0. */
  items: z.array(z.string()).readonly(),
  /** Name, among the controls, of the number of items; absent for all. */
  count: z.string().exactOptional(),
  maxItems: z.int().min(1),
  /** Calls of one request at the same time. */
  maxParallel: z.int().min(1),
  gather: z.enum(['Stack', 'Concat']),
  /** Values, by output, of an item that failed; absent where the step fails. */
  itemDefault: z.record(z.string(), Constant).exactOptional(),
})
export type ForEach = Readonly<z.infer<typeof ForEach>>

/** Runs a step again with what it made. */
const Loop = z.object({
  /** Inputs that get an output of the iteration before. */
  carry: z.array(z.object({ input: z.string(), output: z.string() })).readonly(),
  /** Condition in CEL that ends it; absent for none. */
  until: z.string().exactOptional(),
  /** Outputs of the step that `until` reads, by the names that they have in it. The other tensors are among the controls. */
  reads: z.array(z.object({ name: z.string(), output: z.string() })).readonly(),
  maxIterations: z.int().min(1),
})
export type Loop = Readonly<z.infer<typeof Loop>>

/** Options as they are in JSON; the catalogue of built-ins knows them. */
export const BuiltinOptions = z.record(z.string(), z.custom<Json>())

const GraphStep = z.object({
  /** Name in errors, details and metrics. No two steps of a graph share it. */
  name: z.string().min(1),
  /**
   * Served name of the Model or Ensemble that the step runs. For a built-in: of the Model in whose replicas it runs, because its files are
   * there, else BUILTIN_HOST.
   */
  model: z.string(),
  /** The built-in that runs in place of the model; absent for none. Options are as they were written, with defaults once they were read. */
  builtin: z.object({ name: z.string(), options: BuiltinOptions }).exactOptional(),
  /** Version of the model; -1 is the latest one that is READY. */
  version: z.int().min(-1),
  /** Inputs of the model that are fed, each once. */
  inputs: z.array(z.object({ name: z.string(), from: Source }).readonly()).readonly(),
  /** Tensors that `when`, `until` and `count` read, by the names that they have in them. */
  controls: z
    .array(z.object({ name: z.string(), from: TensorSource }))
    .readonly()
    .exactOptional(),
  /** Condition in CEL. The step is skipped where it is false. */
  when: z.string().exactOptional(),
  /** Absent for a step that runs once. No step has `loop` too. */
  forEach: ForEach.exactOptional(),
  loop: Loop.exactOptional(),
  /** Parameters that the step's requests have beside those of the ensemble's request, which they replace. */
  parameters: z.record(z.string(), z.union([z.number(), z.string(), z.boolean()])).exactOptional(),
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
    outputs: z
      .array(
        z
          .object({
            name: z.string(),
            from: OutputSource,
            /** Whether a response may lack it. */
            optional: z.literal(true).exactOptional(),
          })
          .readonly(),
      )
      .readonly(),
    /** Values of optional inputs that a request leaves out, by the name of the input. */
    defaults: z.record(z.string(), Constant).exactOptional(),
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
    for (const [i, step] of steps.entries()) {
      if (steps.findIndex(({ name }) => name === step.name) !== i) {
        issue(['steps', i, 'name'], `got '${step.name}' again, want different names`)
      }
      const indexes = [...step.after, ...stepsOf(readsOf(step))]
      if (indexes.some((index) => index >= steps.length)) {
        issue(['steps', i], `want steps from 0 to ${steps.length - 1}`)
      }
    }
    for (const [i, { from }] of value.outputs.entries()) {
      const wrong = stepsOf(tensorsOf(from)).find((step) => step >= steps.length)
      if (wrong === undefined) continue
      issue(['outputs', i, 'from'], `got step ${wrong}, want steps from 0 to ${steps.length - 1}`)
    }
  })
/** The graph of an ensemble. Immutable. */
export type Graph = Readonly<z.infer<typeof Graph>>

/** Lists the tensors that a source may take its value from, the preferred one first; none for a constant. */
export function tensorsOf(source: Source): readonly TensorSource[] {
  if (source.kind === 'constant') return []
  return source.kind === 'firstOf' ? source.tensors : [source]
}

/** Lists the tensors that a step waits for, some of them perhaps several times. */
export function readsOf({
  inputs,
  controls = [],
}: Pick<GraphStep, 'inputs' | 'controls'>): readonly TensorSource[] {
  return [...inputs.flatMap(({ from }) => tensorsOf(from)), ...controls.map(({ from }) => from)]
}

/** Lists the steps that make tensors. */
export function stepsOf(tensors: readonly TensorSource[]): readonly number[] {
  return tensors.flatMap((tensor) => (tensor.kind === 'made' ? tensor.step : []))
}

/** Returns the name of a tensor. Only a tensor that is written onto the name of an input shares it, with that input. */
export function tensorName({ steps }: Graph, source: TensorSource): string {
  if (source.kind !== 'made') return source.name
  const made = steps[source.step]?.outputs.find(({ name }) => name === source.output)
  return made?.tensor ?? `${steps[source.step]?.name}.${source.output}`
}

/** Lists the outputs that a response may lack because steps were skipped. */
export function optionalOutputsOf({ outputs }: Graph): readonly string[] {
  return outputs.flatMap(({ name, optional = false }) => (optional ? [name] : []))
}

/** Lists what a graph may call: the models of its steps, BUILTIN_HOST among them, and those of their fallbacks. */
export function calleesOf({ steps }: Pick<Graph, 'steps'>): readonly Callee[] {
  return [...steps, ...steps.flatMap(({ call = {} }) => fallbackOf(call) ?? [])]
}

/** Lists the names of the models that a graph may call, each once, those of its steps first. BUILTIN_HOST is among them. */
export function calledNamesOf(graph: Pick<Graph, 'steps'>): readonly string[] {
  return [...new Set(calleesOf(graph).map(({ model }) => model))]
}

/** Lists the files that built-in steps read, with the model beside which each is. */
export function filesOfBuiltins({ steps }: Pick<Graph, 'steps'>) {
  return steps.flatMap(({ model, builtin }, step) => {
    const file = builtin?.options['file']
    return typeof file === 'string' ? [{ step, model, file }] : []
  })
}

/** Lists the names of the Models and Ensembles that a graph may call, as `calledNamesOf`. */
export function modelsOf(graph: Pick<Graph, 'steps'>): readonly string[] {
  return calledNamesOf(graph).filter((name) => name !== BUILTIN_HOST)
}
