import type { ModelConfig } from '@tutti/model-config'
import { type StepPlace, stepOf, stepPlaces } from './mutated-places.ts'
import type { Mutant, Mutation, Subject } from './mutation.ts'
import type { EnsembleOutput, EnsembleSketch } from './sketch.ts'
import type { ConstantDraft, SpecDraft } from './spec-draft.ts'

/* Mutations of datatypes and shapes. */

/** A constant of a spec. */
interface ConstantPlace {
  readonly path: string
  readonly of: (spec: SpecDraft) => ConstantDraft | undefined
}

function constantPlaces({ ensemble }: Subject): readonly ConstantPlace[] {
  const inputs = ensemble.inputs
    .filter((input) => input.default !== undefined)
    .map(({ name }) => ({
      path: `inputs(${name}).default`,
      of: (spec: SpecDraft) => spec.inputs.find((input) => input.name === name)?.default,
    }))
  return [...inputs, ...stepPlaces(ensemble).flatMap(constantsOf)]
}

function constantsOf({ index, path, written }: StepPlace): readonly ConstantPlace[] {
  const { constants = {}, forEach, onError } = written
  const items = forEach?.onItemError?.default ?? {}
  return [
    ...Object.keys(constants).map((name) => ({
      path: `${path}.constants[${name}]`,
      of: (spec: SpecDraft) => stepOf(spec, index).constants?.[name],
    })),
    ...Object.keys(items).map((name) => ({
      path: `${path}.forEach.onItemError.default[${name}]`,
      of: (spec: SpecDraft) => stepOf(spec, index).forEach?.onItemError?.default[name],
    })),
    ...Object.keys(onError?.default ?? {}).map((name) => ({
      path: `${path}.onError.default[${name}]`,
      of: (spec: SpecDraft) => stepOf(spec, index).onError?.default?.[name],
    })),
  ]
}

/** An output with the name of an input is compared with that, one of several tensors with its declaration. */
function outputPath(
  { inputs }: EnsembleSketch,
  { name, from, i }: Pick<EnsembleOutput, 'name' | 'from'> & { readonly i: number },
): string {
  if (from.length > 1) return `outputs[${i}](${name}).firstOf`
  const isShared = inputs.some((input) => input.name === name)
  return isShared ? `outputs[${i}](${name}).from` : `outputs[${i}].from`
}

/** The datatype that a mutation puts in place of another one. */
const otherThan = (datatype: string): string => (datatype === 'INT32' ? 'FP64' : 'INT32')

export const TYPE_MUTATIONS: readonly Mutation[] = [
  {
    name: 'a value of another datatype',
    find: (subject) =>
      constantPlaces(subject).map(
        ({ path, of }): Mutant => ({
          change: (spec) => {
            const constant = of(spec)
            if (constant === undefined) return
            constant.datatype = 'INT32'
            constant.value = constant.value.map(() => 1)
          },
          reason: 'DatatypeMismatch',
          path,
        }),
      ),
  },
  {
    name: 'a value of another shape',
    find: (subject) =>
      constantPlaces(subject).map(
        ({ path, of }): Mutant => ({
          change: (spec) => void of(spec)?.shape.push(1, 1, 1),
          reason: 'ShapeMismatch',
          path,
        }),
      ),
  },
  {
    name: 'an output declared with another datatype',
    find: ({ ensemble }) =>
      ensemble.outputs.map(
        ({ name, from }, i): Mutant => ({
          change: ({ outputs }) => {
            const output = outputs[i]
            if (output !== undefined) output.datatype = otherThan(output.datatype)
          },
          reason: 'DatatypeMismatch',
          path: outputPath(ensemble, { name, from, i }),
        }),
      ),
  },
  {
    name: 'an output declared with another shape',
    find: ({ ensemble }) =>
      ensemble.outputs.map(
        ({ name, from }, i): Mutant => ({
          change: ({ outputs }) => void outputs[i]?.shape.push(1, 1),
          reason: 'ShapeMismatch',
          path: outputPath(ensemble, { name, from, i }),
        }),
      ),
  },
  {
    name: 'a model that takes another datatype',
    find: (subject) =>
      takers(subject, 'DatatypeMismatch', (input) => ({
        ...input,
        data_type: input.data_type === 'TYPE_INT32' ? 'TYPE_FP64' : 'TYPE_INT32',
      })),
  },
  {
    name: 'a model that takes another shape',
    find: (subject) =>
      takers(subject, 'ShapeMismatch', (input) => ({ ...input, dims: [...input.dims, 7, 7] })),
  },
  {
    name: 'a fallback that makes another datatype',
    find: (subject) =>
      fallbacks(subject, 'DatatypeMismatch', (output) => ({ ...output, data_type: 'TYPE_INT32' })),
  },
  {
    name: 'a fallback that makes another shape',
    find: (subject) =>
      fallbacks(subject, 'ShapeMismatch', (output) => ({
        ...output,
        dims: [...output.dims, 7, 7],
      })),
  },
]

type Input = ModelConfig['input'][number]
type Output = ModelConfig['output'][number]

/** Changes the first mapped input of each step's model. */
function takers(
  { ensemble, configs }: Subject,
  reason: string,
  change: (input: Input) => Input,
): readonly Mutant[] {
  return stepPlaces(ensemble).flatMap(({ path, step, written }): readonly Mutant[] => {
    const config = configs.get(step.callee.name)
    const [name] = Object.keys(written.inputMap ?? {})
    if (config === undefined || name === undefined || step.callee.kind !== 'model') return []
    const input = config.input.map((one) => (one.name === name ? change(one) : one))
    return [{ configs: [{ ...config, input }], reason, path: `${path}.inputMap[${name}]` }]
  })
}

/** Changes the outputs of each fallback that is a model. */
function fallbacks(
  { ensemble, configs }: Subject,
  reason: string,
  change: (output: Output) => Output,
): readonly Mutant[] {
  return stepPlaces(ensemble).flatMap(({ path, step, written }): readonly Mutant[] => {
    const { modelRef } = written.onError?.fallback ?? {}
    const config = configs.get(modelRef?.name ?? '')
    const isRead = step.asked.some((name) => config?.output.some((one) => one.name === name))
    if (config === undefined || !isRead) return []
    const output = config.output.map((one) => change(one))
    const changed = { configs: [{ ...config, output }], reason }
    return [{ ...changed, path: `${path}.onError.fallback.modelRef` }]
  })
}
