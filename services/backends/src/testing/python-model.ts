import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { env } from 'node:process'
import type { ModelConfig, ModelVersionSource } from '@tutti/model-config'
import { instanceGroup } from '@tutti/model-config/testing'
import type { EngineOptions, LoadedModel } from '../engine.ts'
import { createPythonEngine, type PythonEngineOptions } from '../python/python-engine.ts'
import { modelConfig } from './model-source.ts'

/** Python with NumPy, prepared by the test command; undefined where it is not to be had. */
export const TEST_PYTHON = env['TUTTI_TEST_PYTHON']
export const WITHOUT_PYTHON =
  TEST_PYTHON === undefined && 'Python with NumPy is not installed (TUTTI_TEST_PYTHON is not set)'

/** A test, which registers an end. */
export interface Teardown {
  teardown(end: () => unknown): void
}

/** A Python model on disk, as a version of a repository. Removed with the test. */
export async function writePythonModel(
  t: Teardown,
  code: string,
  config: ModelConfig = pythonConfig(),
): Promise<ModelVersionSource> {
  const root = await mkdtemp(join(tmpdir(), 'tutti-model-'))
  t.teardown(() => rm(root, { recursive: true, force: true }))
  const modelDirectory = join(root, config.name)
  const versionDirectory = join(modelDirectory, '1')
  await mkdir(versionDirectory, { recursive: true })
  await writeFile(join(versionDirectory, 'model.py'), code)
  return { name: config.name, version: 1, modelDirectory, versionDirectory, revision: '0', config }
}

const port = (name: string) => ({ name, type: 'TYPE_UINT8' as const, dims: [-1] })

/** `x` in and `y` out, UINT8 of any length; `rest` replaces what is to be different. */
export function pythonConfig(rest: Partial<ModelConfig> = {}): ModelConfig {
  return modelConfig([port('x')], [port('y')], {
    backend: 'python',
    instance_group: [instanceGroup({ name: 'm' })],
    ...rest,
  })
}

/** The methods of a model class as a whole model.py. */
export function pythonModel(methods: string, head = ''): string {
  const body = methods
    .split('\n')
    .map((line) => (line === '' ? '' : `    ${line}`))
    .join('\n')
  return `import os, signal, sys, threading, time\nimport numpy as np\nimport triton_python_backend_utils as pb_utils\n${head}\n\nclass TritonPythonModel:\n${body}\n`
}

/** `execute` that answers each request with `y`, an expression of the array `x`. */
export function answerWith(expression: string): string {
  return `def execute(self, requests):
    responses = []
    for request in requests:
        x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
        responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", ${expression})]))
    return responses`
}

export interface PythonTestOptions extends PythonEngineOptions {
  readonly config?: ModelConfig
  readonly load?: Partial<EngineOptions>
}

/** Writes a model, loads it, and closes it with the test. */
export async function loadPythonModel(
  t: Teardown,
  code: string,
  o: PythonTestOptions = {},
): Promise<LoadedModel> {
  const source = await writePythonModel(t, code, o.config)
  const engine = createPythonEngine({ interpreter: TEST_PYTHON ?? 'python3', ...o })
  const model = await engine.load(source, { instances: 1, ...o.load })
  t.teardown(() => model.close())
  return model
}

/** An input or output `x` of bytes. */
export function bytesRequestInput(...values: readonly number[]) {
  return {
    name: 'x',
    datatype: 'UINT8' as const,
    shape: [values.length],
    data: Uint8Array.from(values),
  }
}
