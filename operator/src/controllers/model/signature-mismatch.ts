import type { ModelSpec } from '@tutti/api'
import type { ModelConfig } from '@tutti/model-config'
import { fromConfigDatatype } from '@tutti/tensor'

type Side = 'inputs' | 'outputs'
type Declared = NonNullable<ModelSpec[Side]>[number]
type Tensor = Pick<ModelConfig['output'][number], 'name' | 'data_type' | 'dims'>

/** Finds the first difference between the Model's declaration and the served model, in one line; undefined if both agree. */
export function findMismatch(spec: ModelSpec, config: ModelConfig): string | undefined {
  if (spec.maxBatchSize !== undefined && spec.maxBatchSize !== config.max_batch_size) {
    return `spec.maxBatchSize: ${spec.maxBatchSize}, the model is served with ${config.max_batch_size}; leave it out to take what the repository says`
  }
  return (
    findSideMismatch('inputs', spec.inputs, config.input) ??
    findSideMismatch('outputs', spec.outputs, config.output)
  )
}

function findSideMismatch(
  side: Side,
  declared: readonly Declared[] | undefined,
  served: readonly Tensor[],
): string | undefined {
  if (declared === undefined) return undefined
  for (const [index, tensor] of declared.entries()) {
    const found = served.find(({ name }) => name === tensor.name)
    const problem = found === undefined ? missing(side, served) : differing(tensor, found)
    if (problem !== undefined)
      return `${pathOf(side, index, tensor.name)}${problem}; ${HINTS[side]}`
  }
  const extra = served.find(({ name }) => declared.every((tensor) => tensor.name !== name))
  return extra === undefined
    ? undefined
    : `spec.${side}: '${extra.name}' is missing, the model has it; ${HINTS[side]}`
}

const HINTS: Readonly<Record<Side, string>> = {
  inputs: 'leave spec.inputs out to take what the model says',
  outputs: 'leave spec.outputs out to take what the model says',
}

function pathOf(side: Side, index: number, name: string): string {
  return `spec.${side}[${index}](${name})`
}

function missing(side: Side, served: readonly Tensor[]): string {
  const names = served.map(({ name }) => `'${name}'`).join(', ')
  return `: the model has no such ${side.slice(0, -1)}, it has ${names === '' ? 'none' : names}`
}

function differing(declared: Declared, served: Tensor): string | undefined {
  const datatype = fromConfigDatatype(served.data_type)
  if (datatype !== declared.datatype) {
    return `.datatype: ${declared.datatype}, the model says ${datatype ?? 'none'}`
  }
  const { shape } = declared
  const fits =
    shape.length === served.dims.length &&
    shape.every((extent, i) => extent === served.dims[i] || extent === -1 || served.dims[i] === -1)
  return fits
    ? undefined
    : `.shape: [${shape.join(',')}], the model says [${served.dims.join(',')}]`
}

/**
 * Finds a declared tensor that the error of a failed load names in quotes; engines compare the declaration with the model file.
 *
 * @returns the path of the tensor and the error in one line; undefined if the error names no declared tensor.
 */
export function findLoadMismatch(spec: ModelSpec, loadError: string): string | undefined {
  for (const side of ['inputs', 'outputs'] as const) {
    for (const [index, { name }] of (spec[side] ?? []).entries()) {
      if (!loadError.includes(`'${name}'`) && !loadError.includes(`"${name}"`)) continue
      return `${pathOf(side, index, name)}: ${loadError}; ${HINTS[side]}`
    }
  }
  return undefined
}
