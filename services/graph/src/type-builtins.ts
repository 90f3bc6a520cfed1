import {
  BUILTIN_HOST,
  type BuiltinFault,
  type FeedingTensor,
  MAX_STEP_TEXT,
  parseBuiltin,
  toModelConfig,
  toStepText,
} from '@tutti/builtins'
import type { ModelConfig, ModelInput } from '@tutti/model-config'
import { fromConfigDatatype, type Shape } from '@tutti/tensor'
import type { ConfigOfStep } from './check/find-tensor-faults.ts'
import { type Graph, type GraphStep, type Source, type TensorSource, tensorsOf } from './graph.ts'
import { signatureOf } from './step-signature.ts'

/** The configurations of what the steps of a graph run, those of built-ins computed from what feeds them. */
export interface TypedSteps {
  /** As they are for one call; undefined for a step whose model, or what feeds it, is not known or does not fit. */
  readonly configOf: ConfigOfStep
  /** Lists what is wrong with the built-in of a step; nothing for another step. */
  readonly faultsOf: (step: GraphStep) => readonly BuiltinFault[]
}

interface TypedStep {
  readonly config?: ModelConfig
  readonly faults: readonly BuiltinFault[]
}

const UNKNOWN: TypedStep = { faults: [] }

/**
 * Computes the inputs and outputs of the built-ins of a graph, each from the tensors that feed it.
 *
 * @param o.config - of the ensemble, for its inputs.
 * @param o.modelOf - finds the configurations of the steps that run a Model or an Ensemble.
 */
export function typeBuiltins(o: {
  readonly config: Pick<ModelConfig, 'input' | 'max_batch_size'>
  readonly graph: Pick<Graph, 'steps'>
  readonly modelOf: ConfigOfStep
}): TypedSteps {
  const { config, graph, modelOf } = o
  const known = new Map<GraphStep, TypedStep>()
  const typeOf = (step: GraphStep): TypedStep => {
    const found = known.get(step)
    if (found !== undefined) return found
    // Steps that wait for one another have no types; the cycle itself is told elsewhere.
    known.set(step, UNKNOWN)
    const typed = typeBuiltin(step, (source) => feed(source))
    known.set(step, typed)
    return typed
  }
  const configOf: ConfigOfStep = (step) =>
    step.builtin === undefined ? modelOf(step) : typeOf(step).config
  const feed = (source: Source): FeedingTensor => {
    if (source.kind === 'constant') {
      const { datatype, shape } = source.constant
      return { datatype, dims: shape }
    }
    return joinAlternatives(tensorsOf(source).map(feedOne))
  }
  const feedOne = (source: TensorSource): FeedingTensor => {
    if (source.kind === 'unknown') return {}
    if (source.kind === 'input') {
      // The steps see the reshaped tensor; a model's own reshape is its own business.
      const inputs = config.input.map((input) => ({
        ...input,
        dims: input.reshape?.shape ?? input.dims,
      }))
      return describe(inputs, source.name, config.max_batch_size)
    }
    const step = graph.steps[source.step]
    const made = step && signatureOf(step, configOf(step))
    return made === undefined ? {} : describe(made.output, source.output, made.max_batch_size)
  }
  return {
    configOf,
    faultsOf: (step) => (step.builtin === undefined ? [] : typeOf(step).faults),
  }
}

function typeBuiltin(
  { builtin, model, inputs, forEach }: GraphStep,
  feed: (source: Source) => FeedingTensor,
): TypedStep {
  if (builtin === undefined) return UNKNOWN
  const { name, options } = builtin
  const { step, faults: wrong } = parseBuiltin({ ...options, name })
  if (step === undefined) return { faults: wrong }
  const feeding = inputs.map(({ name: input, from }): [string, FeedingTensor] => {
    const fed = feed(from)
    return [input, forEach?.items.includes(input) === true ? itemOf(fed) : fed]
  })
  const modelName = `builtin:${name}`
  const { config, faults } = toModelConfig(step, { modelName, inputs: new Map(feeding) })
  const missing = step.options['file'] !== undefined && model === BUILTIN_HOST ? [NO_MODEL] : []
  if (config === undefined) return { faults: [...missing, ...faults] }
  const size = toStepText(config).length
  const large = size > MAX_STEP_TEXT ? [tooLarge(size)] : []
  return { config, faults: [...missing, ...large] }
}

const NO_MODEL: BuiltinFault = {
  path: 'model',
  got: 'none',
  want: 'the served name of the Model in whose directory the file is',
}

function tooLarge(size: number): BuiltinFault {
  const want = `at most ${MAX_STEP_TEXT}; long lists belong in a file beside a Model (\`model\` and \`file\`)`
  return { path: '', got: `options of ${size} characters`, want }
}

/** Describes a tensor with its batch dimension, if it has one. */
function describe(
  tensors: readonly Pick<ModelInput, 'name' | 'data_type' | 'dims'>[],
  name: string,
  maxBatchSize: number,
): FeedingTensor {
  const found = tensors.find((tensor) => tensor.name === name)
  if (found === undefined) return {}
  const { data_type: dataType, dims } = found
  return {
    datatype: fromConfigDatatype(dataType),
    dims: maxBatchSize > 0 ? [-1, ...dims] : dims,
  }
}

/** Describes one item of a tensor that is cut along axis 0. */
function itemOf({ datatype, dims }: FeedingTensor): FeedingTensor {
  return { datatype, dims: dims?.slice(1) }
}

/** Joins dims of one rank: an extent that differs may be any. */
function join(dims: Shape, other: Shape): Shape {
  return dims.map((extent, i) => (extent === other[i] ? extent : -1))
}

/** Describes the first that is there of several tensors. They have one datatype and rank, which is checked elsewhere. */
function joinAlternatives(all: readonly FeedingTensor[]): FeedingTensor {
  const [first = {}, ...others] = all.filter(({ dims }) => dims !== undefined)
  return {
    ...first,
    dims: others.reduce((dims, one) => dims && join(dims, one.dims ?? []), first.dims),
  }
}
