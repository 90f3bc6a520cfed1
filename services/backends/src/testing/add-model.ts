import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildOnnx, type OnnxSpec } from '@tutti/builtins'
import type { ModelConfig } from '@tutti/model-config'
import type { Datatype, StepRequest } from '@tutti/tensor'
import { fp32Tensor } from './execute.ts'
import { type DeclaredTensor, modelConfig, stepRequest } from './model-source.ts'

/** A declared FP32 tensor; dims default to [2]. */
export function fp32Declared(name: string, dims: readonly number[] = [2]): DeclaredTensor {
  return { name, type: 'TYPE_FP32', dims }
}

/** The configuration of `buildAddModel(2)` with batches of up to 8. */
export const ADD_CONFIG: ModelConfig = modelConfig(
  [fp32Declared('a'), fp32Declared('b')],
  [fp32Declared('sum')],
  { max_batch_size: 8 },
)

/** Rows of `first`, `first + 1`, ... in `a` and of 100 in `b`, for `buildAddModel(2)`. */
export function addRequest(rows: number, first: number): StepRequest {
  const values = Array.from({ length: rows * 2 }, (_, i) => first + i)
  const hundreds = values.map(() => 100)
  return stepRequest([fp32Tensor('a', [rows, 2], values), fp32Tensor('b', [rows, 2], hundreds)], {
    batchSize: rows,
  })
}

/** A model whose output `y` is its input `x`. */
export function identitySpec(type: Datatype, dims: readonly (string | number)[] = ['N']): OnnxSpec {
  return {
    inputs: [{ name: 'x', type, dims }],
    outputs: [{ name: 'y', type, dims }],
    operators: [{ op: 'Identity', inputs: ['x'], outputs: ['y'] }],
  }
}

/** Writes a model file into a new temporary directory. */
export async function writeModelFile(
  bytes: Uint8Array,
  filename = 'model.onnx',
): Promise<{ readonly directory: string; readonly remove: () => Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), 'tutti-onnx-'))
  await writeFile(join(directory, filename), bytes)
  return { directory, remove: () => rm(directory, { recursive: true, force: true }) }
}

/** A model that adds its inputs `a` and `b` to `sum`: FP32 [N, width]. */
export function buildAddModel(width: number): Uint8Array<ArrayBuffer> {
  const dims = ['N', width]
  return buildOnnx({
    inputs: [
      { name: 'a', type: 'FP32', dims },
      { name: 'b', type: 'FP32', dims },
    ],
    outputs: [{ name: 'sum', type: 'FP32', dims }],
    operators: [{ op: 'Add', inputs: ['a', 'b'], outputs: ['sum'] }],
  })
}
