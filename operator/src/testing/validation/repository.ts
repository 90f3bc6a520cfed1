import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** A tensor as manifests write it. */
export interface Tensor {
  readonly name: string
  readonly datatype: string
  readonly shape: readonly number[]
  readonly optional?: boolean
}

/** A model or an ensemble that steps may run. */
export interface Target {
  readonly kind: 'Model' | 'Ensemble'
  readonly servedName: string
  readonly maxBatchSize: number
  readonly inputs: readonly Tensor[]
  readonly outputs: readonly Tensor[]
}

/** A model of the repository, described by its own config.pbtxt. */
export interface RepositoryModel extends Target {
  readonly isDecoupled: boolean
  /** Versions that have a folder. */
  readonly versions: readonly number[]
}

const fp32 = (name: string, shape: readonly number[] = [4]): Tensor => ({
  name,
  datatype: 'FP32',
  shape,
})

const model = (
  servedName: string,
  o: Partial<Omit<RepositoryModel, 'kind' | 'servedName'>>,
): RepositoryModel => ({
  kind: 'Model',
  servedName,
  maxBatchSize: 0,
  inputs: [fp32('a')],
  outputs: [fp32('a'), fp32('b')],
  isDecoupled: false,
  versions: [1],
  ...o,
})

/** The models of the test repository: one of each kind that manifests alone cannot describe. */
export const REPOSITORY: readonly RepositoryModel[] = [
  model('plain', {}),
  model('versioned', { versions: [1, 2, 3] }),
  model('decoupled', { isDecoupled: true }),
  model('another_decoupled', { isDecoupled: true, inputs: [fp32('a'), fp32('b')] }),
  model('batched', { maxBatchSize: 8, versions: [7] }),
]

/** Returns the text of the config.pbtxt of a model of REPOSITORY. */
export function toConfigText({
  servedName,
  maxBatchSize,
  inputs,
  outputs,
  isDecoupled,
}: RepositoryModel): string {
  return [
    `name: "${servedName}"`,
    'backend: "onnxruntime"',
    `max_batch_size: ${maxBatchSize}`,
    ...inputs.map((input) => `input ${toTensorText(input)}`),
    ...outputs.map((output) => `output ${toTensorText(output)}`),
    ...(isDecoupled ? ['model_transaction_policy { decoupled: true }'] : []),
    '',
  ].join('\n')
}

function toTensorText({ name, datatype, shape }: Tensor): string {
  return `{ name: "${name}" data_type: TYPE_${datatype} dims: [ ${shape.join(', ')} ] }`
}

/** Writes REPOSITORY as a model repository into a folder. It has no model files, so no model can be loaded. */
export async function writeRepository(folder: string): Promise<void> {
  for (const one of REPOSITORY) {
    const path = join(folder, one.servedName)
    for (const version of one.versions) {
      await mkdir(join(path, String(version)), { recursive: true })
    }
    await writeFile(join(path, 'config.pbtxt'), toConfigText(one))
  }
}
