import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import { findIneffective, refuseField } from '../config-fields.ts'
import type { Placement } from '../placement.ts'
import { type Accelerators, readAccelerators } from './accelerators.ts'
import type { ExecutionProvider, OrtSessionOptions } from './session-contract.ts'

export interface CompiledParameters {
  /** Session options without the execution provider, which belongs to the instance. */
  readonly session: Omit<OrtSessionOptions, 'executionProviders'>
  readonly accelerators: Accelerators
  /** Parameters that are set and have no effect here. */
  readonly ineffective: readonly string[]
}

/** How the text of a parameter is read. */
interface Reading<T> {
  /** @returns undefined for a text that it refuses. */
  readonly read: (text: string) => T | undefined
  readonly fallback: T
  readonly want: string
}

/** Parallelism comes from instances. */
const THREADS: Reading<number> = {
  read: (text) => (/^\d{1,4}$/.test(text) ? Number(text) : undefined),
  fallback: 1,
  want: 'a number of threads, 0 for all',
}
const FLAGS = new Map([
  ['1', true],
  ['true', true],
  ['0', false],
  ['false', false],
])
const FLAG: Reading<boolean> = {
  read: (text) => FLAGS.get(text),
  fallback: true,
  want: '0 or 1',
}
const MODES = new Map<string, OrtSessionOptions['executionMode']>([
  ['0', 'sequential'],
  ['1', 'parallel'],
])
const MODE: Reading<OrtSessionOptions['executionMode']> = {
  read: (text) => MODES.get(text),
  fallback: 'sequential',
  want: '0 (sequential) or 1 (parallel)',
}
const GRAPH_LEVELS = new Map<number, OrtSessionOptions['graphOptimizationLevel']>([
  [0, 'all'],
  [1, 'extended'],
  [-1, 'basic'],
  [2, 'disabled'],
])
/** Fatal only: what fails comes back as an exception, and the runtime's own lines are not JSON. */
const LOG_FATAL = 4
const GPU_BOUND = 'gpu_mem_limit'

/** Fields of Triton's that are for other backends or for what the engine does not do. Pinned memory says nothing: it is always on. */
const INEFFECTIVE = [
  'optimization.cuda.graphs',
  'optimization.cuda.graph_spec',
  'optimization.cuda.busy_wait_events',
  'optimization.cuda.output_copy_stream',
  'optimization.priority',
  'optimization.eager_batching',
  'optimization.gather_kernel_buffer_threshold',
  'cc_model_filenames',
  'runtime',
]

/** @throws ServeError UNSUPPORTED naming the field. */
function refuseUnsupported(config: ModelConfig, field: string, why: string): never {
  throw new ServeError('UNSUPPORTED', `unable to load model '${config.name}', ${field}: ${why}`, {
    details: { field },
  })
}

function refuseUnserved(config: ModelConfig, usesGpu: boolean): void {
  if ((config.model_operations?.op_library_filename.length ?? 0) > 0) {
    const field = 'model_operations.op_library_filename'
    refuseUnsupported(config, field, 'libraries of custom operators cannot be loaded')
  }
  if (usesGpu && Object.hasOwn(config.parameters, GPU_BOUND)) {
    const field = `parameters["${GPU_BOUND}"]`
    refuseUnsupported(config, field, 'the engine does not bound GPU memory')
  }
}

/**
 * Converts a model's parameters and optimization settings to session options (triton-semantics 6.2).
 *
 * @throws ServeError MODEL_LOAD_FAILED for a value out of range, UNSUPPORTED for a feature that the engine does not have.
 */
export function compileSessionOptions(config: ModelConfig, usesGpu: boolean): CompiledParameters {
  refuseUnserved(config, usesGpu)
  const accelerators = readAccelerators(config, usesGpu)
  const known = new Set<string>()
  const parameter = <T>(key: string, { read, fallback, want }: Reading<T>): T => {
    known.add(key)
    const text = config.parameters[key]?.string_value
    const value = text === undefined ? fallback : read(text)
    return value ?? refuseField(config.name, `parameters["${key}"]`, `got "${text}", want ${want}`)
  }
  const level = config.optimization?.graph?.level ?? 0
  const entries = Object.entries(config.parameters).filter(([key]) => key.startsWith('session.'))
  const session = {
    graphOptimizationLevel:
      GRAPH_LEVELS.get(level) ??
      refuseField(config.name, 'optimization.graph.level', `got ${level}, want -1, 0, 1 or 2`),
    intraOpNumThreads: parameter('intra_op_thread_count', THREADS),
    interOpNumThreads: parameter('inter_op_thread_count', THREADS),
    executionMode: parameter('execution_mode', MODE),
    enableCpuMemArena: parameter('enable_mem_arena', FLAG),
    enableMemPattern: parameter('enable_mem_pattern', FLAG),
    logSeverityLevel: LOG_FATAL,
    extra: Object.fromEntries(entries.map(([key, { string_value: text }]) => [key, text])),
  }
  const others = Object.keys(config.parameters).filter(
    (key) => !known.has(key) && !key.startsWith('session.'),
  )
  const ofGpus = usesGpu ? [] : ['optimization.execution_accelerators.gpu_execution_accelerator']
  const ineffective = [
    ...findIneffective(config, ofGpus, 'no instance is on a GPU'),
    ...others.map((key) => `parameters["${key}"]: the onnxruntime engine does not use it`),
    ...findIneffective(config, INEFFECTIVE, 'the onnxruntime engine does not use it'),
  ]
  return { session, accelerators, ineffective }
}

/** Lists the execution providers of an instance, as Triton orders them. Operators that one lacks run on the next. */
export function toExecutionProviders(
  placement: Placement,
  { cpu, gpu }: Accelerators,
): readonly ExecutionProvider[] {
  if (placement.kind !== 'GPU') return [...cpu, { name: 'cpu' }]
  const { deviceId } = placement
  const onDevice = gpu.map((one) => ({ ...one, deviceId }))
  return [...onDevice, { name: 'cuda', deviceId }, ...cpu, { name: 'cpu' }]
}
