import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import { refuseField } from '../config-fields.ts'
import type { OrtLibrary } from './ort-library.ts'
import type { ExecutionProvider } from './session-contract.ts'

const FIELD = 'optimization.execution_accelerators'

/** Execution providers that a configuration asks for, in its order, by the device that they use. */
export interface Accelerators {
  /** Instances on a GPU have them too, behind all that run there. */
  readonly cpu: readonly ExecutionProvider[]
  readonly gpu: readonly ExecutionProvider[]
}

type Parameters = Readonly<Record<string, string>>
type Options = (parameters: Parameters, model: string) => Parameters

/** Options of OpenVINO's provider have the names of its parameters: `num_of_threads`, `cache_dir`, `precision`. */
const openvino: Options = (parameters) => ({ device_type: 'CPU', ...parameters })

const PRECISIONS: Readonly<Record<string, Parameters>> = {
  FP32: {},
  FP16: { trt_fp16_enable: '1' },
  INT8: { trt_int8_enable: '1' },
}

/** Triton's names, and those of the runtime. */
const tensorrt: Options = (parameters, model) => {
  const options: Record<string, string> = {}
  for (const [name, value] of Object.entries(parameters)) {
    const field = `${FIELD}.gpu_execution_accelerator["tensorrt"].parameters["${name}"]`
    if (name === 'precision_mode') {
      Object.assign(
        options,
        PRECISIONS[value] ?? refuseField(model, field, `got "${value}", want FP32, FP16 or INT8`),
      )
    } else if (name === 'max_workspace_size_bytes') options['trt_max_workspace_size'] = value
    else if (name.startsWith('trt_')) options[name] = value
    else
      refuseField(
        model,
        field,
        'want precision_mode, max_workspace_size_bytes, or a name of the runtime that begins with trt_',
      )
  }
  return options
}

const CPU: Readonly<Record<string, Options>> = { openvino }
const GPU: Readonly<Record<string, Options>> = { tensorrt }

/**
 * Reads the accelerators of a configuration. As in Triton, those for GPUs apply only to instances on a GPU.
 *
 * @throws ServeError UNSUPPORTED for one that is not known here, MODEL_LOAD_FAILED for parameters that it does not have.
 */
export function readAccelerators(config: ModelConfig, usesGpu: boolean): Accelerators {
  const { gpu_execution_accelerator: ofGpus = [], cpu_execution_accelerator: ofCpus = [] } =
    config.optimization?.execution_accelerators ?? {}
  const read = (known: Readonly<Record<string, Options>>, all: typeof ofGpus) =>
    all.map(({ name, parameters }) => {
      const toOptions = Object.hasOwn(known, name) ? known[name] : undefined
      if (toOptions === undefined) throw refusal(config.name, toUnknown(name, Object.keys(known)))
      return { name, options: toOptions(parameters, config.name) }
    })
  return { cpu: read(CPU, ofCpus), gpu: usesGpu ? read(GPU, ofGpus) : [] }
}

function toUnknown(name: string, known: readonly string[]): string {
  return `accelerator "${name}" is not offered, want ${known.join(' or ')} or none (KIND_GPU instances use CUDA)`
}

function refusal(model: string, why: string): ServeError {
  const text = `unable to load model '${model}', ${FIELD}: ${why}`
  return new ServeError('UNSUPPORTED', text, { details: { field: FIELD } })
}

/** Names the file of a provider: `shared`, `cuda`, `tensorrt`, `openvino`. */
export function providerFile(name: string): string {
  if (process.platform === 'win32') return `onnxruntime_providers_${name}.dll`
  const extension = process.platform === 'darwin' ? 'dylib' : 'so'
  return `libonnxruntime_providers_${name}.${extension}`
}

/** Checks that the provider of an accelerator is beside the runtime's library. @throws ServeError UNSUPPORTED that names it. */
export function requireProvider(
  model: string,
  { name }: ExecutionProvider,
  { path, version }: Pick<OrtLibrary, 'path' | 'version'>,
): void {
  const file = providerFile(name)
  const folder = dirname(path)
  if (existsSync(join(folder, file))) return
  throw refusal(
    model,
    `accelerator "${name}" needs ${file}, which ONNX Runtime ${version} in ${folder} lacks; want the folder of one that has it (--backend-config=onnxruntime,library=FOLDER)`,
  )
}
