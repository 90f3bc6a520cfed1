import { ensembleManifest, modelManifest } from '@tutti/api/testing'
import { type Dice, dice } from '@tutti/graph/testing'
import type { PlainObject } from '@tutti/kube/testing'
import { FAULTS } from './faults.ts'
import { REPOSITORY, type Target, type Tensor } from './repository.ts'

/** A tensor that an ensemble has, and how it is named in references. */
interface Source extends Tensor {
  readonly reference: string
  isRead: boolean
}

const NAMES = ['a', 'b', 'c'] as const
const DATATYPES = ['FP32', 'FP32', 'FP32', 'INT64', 'BYTES'] as const
const SHAPES = [[4], [4], [-1, 3]] as const

export function pick<T>(roll: Dice, among: readonly [T, ...T[]]): T {
  return among[roll(among.length)] ?? among[0]
}

/**
 * Draws the Models and Ensembles of a namespace at random: a mostly valid graph with up to two faults.
 *
 * @param o.hasRepository - true if a Model may leave its description to REPOSITORY.
 * @returns the manifests and the names of the faults. Equal seeds give equal manifests.
 */
export function randomNamespace(seed: number, o: { readonly hasRepository: boolean }) {
  const roll = dice(seed)
  const maxBatchSize = pick(roll, [0, 0, 4])
  const targets: Target[] = []
  const manifests: PlainObject[] = []
  for (let i = 0; i <= roll(3); i += 1) {
    const stored = REPOSITORY[roll(REPOSITORY.length)]
    if (o.hasRepository && stored !== undefined && roll(2) === 0) {
      if (targets.some(({ servedName }) => servedName === stored.servedName)) continue
      manifests.push(modelManifest(`r${i}`, { modelName: stored.servedName }))
      targets.push(stored)
    } else manifests.push(addModel(roll, targets, { name: `m${i}`, maxBatchSize }))
  }
  for (let i = 0; i <= roll(3); i += 1) {
    manifests.push(addEnsemble(roll, targets, { name: `e${i}`, maxBatchSize }))
  }
  /** Names of the changes to the namespace that may be wrong. */
  const faults = Array.from({ length: pick(roll, [0, 1, 1, 1, 2]) }, () => {
    const fault = FAULTS[roll(FAULTS.length)]
    fault?.act(manifests, roll)
    return fault?.name ?? ''
  })
  // Files are in no particular order.
  return { manifests: roll(2) === 0 ? manifests : manifests.toReversed(), faults }
}

interface Wanted {
  readonly name: string
  readonly maxBatchSize: number
}

function addModel(roll: Dice, targets: Target[], { name, maxBatchSize }: Wanted): PlainObject {
  const tensors = (isOutput: boolean): Tensor[] =>
    NAMES.slice(0, 1 + roll(NAMES.length)).map((tensor) => ({
      name: tensor,
      datatype: pick(roll, DATATYPES),
      shape: pick(roll, SHAPES),
      ...(!isOutput && roll(5) === 0 && { optional: true }),
    }))
  const servedName = roll(3) === 0 ? `${name}.served` : name
  const batch = maxBatchSize > 0 ? maxBatchSize * (1 + roll(2)) : roll(4) === 0 ? 8 : 0
  const fields = { maxBatchSize: batch, inputs: tensors(false), outputs: tensors(true) }
  targets.push({ kind: 'Model', servedName, ...fields })
  return modelManifest(name, {
    ...structuredClone(fields),
    ...(servedName !== name && { modelName: servedName }),
  })
}

function addEnsemble(roll: Dice, targets: Target[], { name, maxBatchSize }: Wanted): PlainObject {
  const inputs: Tensor[] = []
  const sources: Source[] = []
  const steps: PlainObject[] = []
  for (let i = 0; i <= roll(4); i += 1) {
    const target = targets[roll(targets.length)]
    if (target === undefined) break
    steps.push(addStep(roll, { target, inputs, sources, name: `s${i}`, maxBatchSize, steps }))
  }
  const made = sources.filter(({ reference }) => !inputs.some((input) => input.name === reference))
  const given = made.filter(({ isRead }) => !isRead || roll(4) === 0)
  const outputs = given.map(({ reference, datatype, shape }, i) => ({
    name: `y${i}`,
    from: reference,
    ...(roll(3) === 0 && { datatype, shape }),
  }))
  const servedName = roll(4) === 0 ? `${name}.served` : name
  targets.push({
    kind: 'Ensemble',
    servedName,
    maxBatchSize,
    inputs,
    outputs: given.map(({ datatype, shape }, i) => ({ name: `y${i}`, datatype, shape })),
  })
  return ensembleManifest(name, {
    ...structuredClone({ inputs, outputs, steps }),
    ...(maxBatchSize > 0 && { maxBatchSize }),
    ...(servedName !== name && { modelName: servedName }),
  })
}

interface StepDraft extends Wanted {
  readonly target: Target
  /** Inputs of the ensemble so far. */
  readonly inputs: Tensor[]
  readonly sources: Source[]
  readonly steps: readonly PlainObject[]
}

function addStep(roll: Dice, o: StepDraft): PlainObject {
  const { target, name, steps } = o
  const reads = addReads(roll, o)
  const outputMap = addOutputs(roll, o)
  const before = steps[roll(steps.length + 3)]
  return {
    name,
    [target.kind === 'Model' ? 'modelRef' : 'ensembleRef']: { name: target.servedName },
    ...reads,
    ...(Object.keys(outputMap).length > 0 && { outputMap }),
    ...(before !== undefined && { dependsOn: [before['name']] }),
  }
}

/** Feeds every input that must be, and some that need not. */
function addReads(roll: Dice, o: StepDraft): PlainObject {
  const inputMap: Record<string, string> = {}
  const inputs: string[] = []
  for (const input of o.target.inputs) {
    if (input.optional === true && o.sources.length > 0 && roll(2) === 0) continue
    const source = findSource(roll, o, withBatch(o, input))
    source.isRead = true
    const isShort = source.reference.endsWith(`.${input.name}`) && roll(2) === 0
    if (isShort) inputs.push(source.reference)
    else inputMap[input.name] = source.reference
  }
  return {
    ...((Object.keys(inputMap).length > 0 || inputs.length === 0) && { inputMap }),
    ...(inputs.length > 0 && { inputs }),
  }
}

/** Makes all outputs readable; some get a name. */
function addOutputs(roll: Dice, o: StepDraft): Record<string, string> {
  const outputMap: Record<string, string> = {}
  for (const output of o.target.outputs) {
    const named = roll(4) === 0 ? `${o.name}_${output.name}` : undefined
    if (named !== undefined) outputMap[output.name] = named
    const reference = named ?? `${o.name}.${output.name}`
    o.sources.push({ ...withBatch(o, output), reference, isRead: false })
  }
  return outputMap
}

/** One that fits, or a new input of the ensemble. */
function findSource(roll: Dice, { inputs, sources }: StepDraft, wanted: Tensor): Source {
  const fitting = sources.filter(
    ({ datatype, shape }) =>
      datatype === wanted.datatype && shape.join() === wanted.shape.join() && roll(5) > 0,
  )
  const found = fitting[roll(fitting.length || 1)]
  if (found !== undefined) return found
  const name = `x${inputs.length}`
  const { datatype, shape } = wanted
  inputs.push({ name, datatype, shape })
  const source: Source = { name, datatype, shape, reference: name, isRead: true }
  sources.push(source)
  return source
}

/** An ensemble without batches sees the batch dimension of a model that has one. */
function withBatch({ target, maxBatchSize }: StepDraft, tensor: Tensor): Tensor {
  const isShown = maxBatchSize === 0 && target.maxBatchSize > 0
  return isShown ? { ...tensor, shape: [-1, ...tensor.shape] } : tensor
}
