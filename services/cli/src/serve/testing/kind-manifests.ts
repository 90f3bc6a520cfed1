import { type ChainStep, portsOf, type StepChain, type StepKind } from '@tutti/backends/testing'
import { formatShape, type NamedTensor } from '@tutti/tensor'

/** Served name of the Model that has the files of steps. */
export const FILES_MODEL = 'files'

const port = (name: string, datatype: string, dims: readonly number[]): object => {
  return { name, datatype, shape: dims }
}

const ensemble = (name: string, spec: object): string => {
  const manifest = { apiVersion: 'tutti.dev/v1alpha1', kind: 'Ensemble', metadata: { name }, spec }
  return JSON.stringify(manifest)
}

/** The served name of the Ensemble of a kind. */
export const kindName = ({ rows: [row = 0] }: StepKind): string => `kind-${row}`

/**
 * The Ensembles of a chain: one, and one for each step that has a chain for each item.
 *
 * @param inputs - drawn for it: their names, and the dims of what the row does not declare.
 */
export function kindManifests(
  kind: StepKind,
  chain: StepChain,
  inputs: readonly NamedTensor[],
): readonly string[] {
  const name = kindName(kind)
  const declared = portsOf(kind.takes)
  const ports = inputs.map((input, i) => {
    const { datatype, dims } = declared[i] ?? { datatype: input.datatype, dims: input.shape }
    return port(input.name, datatype, dims)
  })
  const outputs = chain.outputs.map((from, i) => ({ name: `out${i}`, from }))
  const each = chain.steps.flatMap((step) => eachManifest(name, step))
  return [
    ensemble(name, { inputs: ports, outputs, steps: chain.steps.map((one) => toStep(name, one)) }),
    ...each,
  ]
}

function eachManifest(name: string, { name: step, forEach }: ChainStep): readonly string[] {
  if (forEach === undefined) return []
  const inputs = Object.entries(forEach.inputs).map(([input, text]) => {
    const [one] = portsOf(text)
    if (one === undefined) throw new Error(`${name}: ${input} is ${text}`)
    return port(input, one.datatype, one.dims)
  })
  const outputs = Object.entries(forEach.outputs).map(([output, from]) => ({ name: output, from }))
  const steps = forEach.steps.map((one) => toStep(name, one))
  return [ensemble(`${name}-${step}`, { inputs, outputs, steps })]
}

function toStep(
  ensembleName: string,
  { name, builtin, inputMap, constants, forEach }: ChainStep,
): object {
  const reads = { name, ...(Object.keys(inputMap).length > 0 && { inputMap }) }
  if (forEach !== undefined) {
    const ensembleRef = { name: `${ensembleName}-${name}` }
    return { ...reads, ensembleRef, forEach: { items: forEach.items, maxItems: 64 } }
  }
  const hasFile = builtin?.name === 'tokenize' || builtin?.name === 'detokenize'
  return {
    ...reads,
    builtin: hasFile ? { ...builtin, model: FILES_MODEL } : builtin,
    ...(constants && { constants }),
  }
}

/** Names an input of a row, for messages. */
export const describeInput = ({ name, datatype, shape }: NamedTensor): string =>
  `${name} ${datatype}${formatShape(shape)}`
