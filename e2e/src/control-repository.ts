import { appendFile, cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { BROKEN, copyModels } from './temp-repository.ts'

/** An ensemble of one step over `truncated_onnx`, which does not load. */
const OVER_TRUNCATED = `name: "ens_over_truncated" platform: "ensemble"
input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }
ensemble_scheduling { step { model_name: "truncated_onnx" model_version: -1
  input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } } }`

/** Nothing here is about instances, and the start of each of the default two takes time at every load. */
const ONE_INSTANCE = '\ninstance_group [ { kind: KIND_CPU count: 1 } ]\n'

/** The models that `model_control.py` expects. */
export async function controlRepository(t: Test): Promise<string> {
  const good = ['versioned', 'ens_versioned', 'add_one_batch', 'ens_chain', 'ens_nested']
  const folder = await copyModels(t, good)
  for (const name of ['versioned', 'add_one_batch']) {
    await appendFile(join(folder, name, 'config.pbtxt'), ONE_INSTANCE)
  }
  const broken = ['truncated_onnx', 'syntax_error', 'missing_version', 'ens_missing_model']
  for (const name of broken) {
    await cp(join(BROKEN, name), join(folder, name), { recursive: true })
  }
  await cp(join(folder, 'ens_chain'), join(folder, 'ens_over_truncated'), { recursive: true })
  await writeFile(join(folder, 'ens_over_truncated', 'config.pbtxt'), OVER_TRUNCATED)
  await cp(join(folder, 'versioned'), join(folder, 'never_loaded'), { recursive: true })
  return folder
}
