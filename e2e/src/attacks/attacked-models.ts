import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { ROOT } from '../serving.ts'
import { copyModels, tempFolder } from '../temp-repository.ts'
import { GROWING_MODEL } from './held-bytes.ts'
import { DIVIDED, DIVIDING_MODEL, PICTURE_ENSEMBLE, TEXT_MODEL } from './large-calls.ts'
import { field } from './whole-calls.ts'

const BASIC_MODELS = ['add_one_batch', 'big_identity', TEXT_MODEL]
const SHIPPED_MODELS = [GROWING_MODEL, 'infer_face_restoration_v2.1', 'post_gfpgan']

/** Those of them that are no ensembles. */
export const STEP_MODELS: readonly string[] = [...BASIC_MODELS, ...SHIPPED_MODELS, DIVIDING_MODEL]

/** Repositories of all models that the generators ask. */
export async function attackedModels(t: Test): Promise<readonly string[]> {
  return [
    await copyModels(t, ['ens_chain', ...BASIC_MODELS]),
    await copyModels(t, [...SHIPPED_MODELS, PICTURE_ENSEMBLE], {
      from: join(ROOT, 'model_repository'),
    }),
    await dividingModel(t),
  ]
}

async function dividingModel(t: Test): Promise<string> {
  const folder = await tempFolder(t)
  const version = join(folder, DIVIDING_MODEL, '1')
  await mkdir(version, { recursive: true })
  await writeFile(join(version, 'model.onnx'), dividingOnnx())
  return folder
}

const OPSET = 17
const IR = 8
const INT64 = 7

function text(number: number, value: string): Buffer {
  return field(number, Buffer.from(value))
}

/** `y = Div(a, b)`, all of them INT64 [16]. @see onnx.proto */
function dividingOnnx(): Buffer {
  const shape = field(2, field(1, Buffer.of(8, DIVIDED)))
  const type = field(2, field(1, Buffer.of(8, INT64), shape))
  const port = (number: number, name: string): Buffer => field(number, text(1, name), type)
  const node = field(1, text(1, 'a'), text(1, 'b'), text(2, 'y'), text(4, 'Div'))
  const graph = field(7, node, text(2, 'graph'), port(11, 'a'), port(11, 'b'), port(12, 'y'))
  return Buffer.concat([Buffer.of(8, IR), graph, field(8, Buffer.of(16, OPSET))])
}
