import { cp, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { LOOPBACK, type Serving, startTutti } from '../serving.ts'
import { BASIC, tempFolder } from '../temp-repository.ts'

export interface ConsoleServing extends Serving {
  readonly consolePort: number
}

/** Starts `tutti serve` with the console on a free port, or on `port`. It ends with the test. */
export async function serveConsole(
  t: Test,
  o: { readonly repository: string; readonly flags?: readonly string[]; readonly port?: number },
): Promise<ConsoleServing> {
  const { repository, flags = [], port = 0 } = o
  const args = ['serve', `--model-repository=${repository}`, ...LOOPBACK]
  const { serving, ready } = await startTutti([...args, `--console-port=${port}`, ...flags])
  t.teardown(() => serving.process.stop('SIGKILL'))
  return { ...serving, consolePort: Number(ready['consolePort']) }
}

/** Ones as a request body of `ens_chain`. */
export const CHAIN_REQUEST = JSON.stringify({
  inputs: [{ name: 'X', datatype: 'FP32', shape: [1, 16], data: Array(16).fill(1) }],
})

/** One model `add_one_batch`, and an ensemble `long` that calls it so many times, each second step in parallel with its next. */
export async function longRepository(t: Test, steps: number): Promise<string> {
  const folder = await tempFolder(t)
  await cp(join(BASIC, 'add_one_batch'), join(folder, 'add_one_batch'), { recursive: true })
  const written = Array.from({ length: steps }, (_, i) => {
    const from = i < 2 ? 'X' : `t${i - 2}`
    const to = i === steps - 1 ? 'Y' : `t${i}`
    return `step { model_name: "add_one_batch" model_version: -1
      input_map { key: "X" value: "${from}" } output_map { key: "Y" value: "${to}" } }`
  })
  const rest = `t${steps - 2}`
  await mkdir(join(folder, 'long', '1'), { recursive: true })
  await writeFile(
    join(folder, 'long', 'config.pbtxt'),
    `platform: "ensemble" max_batch_size: 8
    input { name: "X" data_type: TYPE_FP32 dims: [ 16 ] }
    output { name: "Y" data_type: TYPE_FP32 dims: [ 16 ] }
    output { name: "${rest}" data_type: TYPE_FP32 dims: [ 16 ] }
    ensemble_scheduling { ${written.join('\n')} }`,
  )
  return folder
}

/** So many models that are not loaded. */
export async function manyModels(t: Test, count: number): Promise<string> {
  const folder = await tempFolder(t)
  const names = Array.from({ length: count }, (_, i) => `model_${String(i).padStart(4, '0')}`)
  await Promise.all(
    names.map(async (name) => {
      await mkdir(join(folder, name, '1'), { recursive: true })
      await writeFile(join(folder, name, 'config.pbtxt'), 'backend: "onnxruntime"')
    }),
  )
  return folder
}
