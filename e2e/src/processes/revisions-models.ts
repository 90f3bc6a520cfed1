import { cp, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { InferenceClient } from '@tutti/protocol/client'
import type { Test } from 'tap'
import { tempFolder } from '../temp-repository.ts'
import { fp32, int64 } from '../tensors.ts'
import { errorFields } from './asking.ts'
import { BASIC } from './harness.ts'

/** Numbers that the model `shift` adds, by its revision: version 1 each time, other files. `odd` has another signature too. */
export const REVISIONS = { one: 1, three: 3, odd: 3 } as const
export type Revision = keyof typeof REVISIONS

/** Steps of `ens_shift`, all of them `shift`. */
export const SHIFTS = 6

/** A repository with `shift` in one revision, and with `slow`. */
export async function shiftRepository(t: Test, revision: Revision): Promise<string> {
  const folder = await tempFolder(t)
  const dims = revision === 'odd' ? '1' : '-1'
  await writeConfig(
    folder,
    'shift',
    `platform: "onnxruntime_onnx" max_batch_size: 0 ${port('input', 'x', dims)} ${port('output', 'y', dims)}`,
  )
  const file = join(BASIC, 'versioned', String(REVISIONS[revision]), 'model.onnx')
  await mkdir(join(folder, 'shift', '1'))
  await cp(file, join(folder, 'shift', '1', 'model.onnx'))
  await cp(join(BASIC, 'slow'), join(folder, 'slow'), { recursive: true })
  return folder
}

const shift = (from: string, to: string): string => step('shift', { x: from }, to)
const slow = (from: string, to: string): string => step('slow', { x: from, rounds: 'rounds' }, to)

/** A repository of the ensembles: many shifts, and one or two shifts around a `slow` that takes as long as one wants. */
export async function shiftEnsembles(t: Test): Promise<string> {
  const folder = await tempFolder(t)
  const names = Array.from({ length: SHIFTS + 1 }, (_, i) => {
    if (i === 0) return 'x'
    return i === SHIFTS ? 'y' : `t${i}`
  })
  const chain = names.slice(1).map((to, i) => shift(names[i] ?? 'x', to))
  await writeEnsemble(folder, 'ens_shift', '-1', '', chain)
  const rounds = 'input { name: "rounds" data_type: TYPE_INT64 dims: [ 1 ] }'
  const late = [slow('x', 'a'), shift('a', 'b'), shift('b', 'y')]
  await writeEnsemble(folder, 'ens_shift_late', '1', rounds, late)
  const around = [shift('x', 'a'), slow('a', 'b'), shift('b', 'y')]
  await writeEnsemble(folder, 'ens_shift_around', '1', rounds, around)
  return folder
}

async function writeEnsemble(
  folder: string,
  name: string,
  dims: string,
  more: string,
  steps: readonly string[],
): Promise<void> {
  const ports = `${port('input', 'x', dims)} ${more} ${port('output', 'y', dims)}`
  await writeConfig(
    folder,
    name,
    `platform: "ensemble" max_batch_size: 0 ${ports} ensemble_scheduling { ${steps.join(' ')} }`,
  )
  await mkdir(join(folder, name, '1'))
}

async function writeConfig(folder: string, name: string, text: string): Promise<void> {
  await mkdir(join(folder, name))
  await writeFile(join(folder, name, 'config.pbtxt'), `name: "${name}" ${text}\n`)
}

function port(kind: 'input' | 'output', name: string, dims: string): string {
  return `${kind} { name: "${name}" data_type: TYPE_FP32 dims: [ ${dims} ] }`
}

function step(model: string, inputs: Readonly<Record<string, string>>, to: string): string {
  const maps = Object.entries(inputs).map(
    ([key, value]) => `input_map { key: "${key}" value: "${value}" }`,
  )
  return `step { model_name: "${model}" model_version: -1 ${maps.join(' ')} output_map { key: "y" value: "${to}" } }`
}

/** Number that was added to each, or the error as code and reason; 'mixed' if not the same everywhere. */
export type Shifted = number | string

/** Asks an ensemble of shifts, or `shift` itself, and says by how much it shifted. */
export async function askShift(
  client: InferenceClient,
  modelName: string,
  o: { readonly seed: number; readonly rounds?: number },
): Promise<Shifted> {
  const length = o.rounds === undefined ? 8 : 1
  const x = Float32Array.from({ length }, (_, i) => o.seed * 100 + i * 10)
  const inputs = [fp32('x', x, [length])]
  if (o.rounds !== undefined) inputs.push(int64('rounds', [o.rounds]))
  try {
    const { outputs } = await client.infer({ modelName, inputs }, { timeoutMs: 80_000 })
    const data = Buffer.from(outputs[0]?.data ?? [])
    const added = new Set(Array.from(x, (value, i) => data.readFloatLE(4 * i) - value))
    const [only] = added
    return added.size === 1 && only !== undefined ? only : 'mixed'
  } catch (error) {
    const { code, reason } = errorFields(error)
    return `${String(code)} ${String(reason)}`
  }
}
