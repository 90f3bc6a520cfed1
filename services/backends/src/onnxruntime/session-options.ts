import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import { findIneffective, refuseField } from '../config-fields.ts'
import type { Placement } from '../placement.ts'
import type { OrtSessionOptions } from './ort-binding.ts'

export interface CompiledOptions {
  /** Everything but the execution provider, which belongs to the instance. */
  readonly session: Omit<OrtSessionOptions, 'executionProviders'>
  /** What is set and has no effect here, and why. */
  readonly ineffective: readonly string[]
}

type Level = OrtSessionOptions['graphOptimizationLevel']

const GRAPH_LEVELS = new Map<number, Level>([
  [0, 'all'],
  [1, 'extended'],
  [-1, 'basic'],
  [2, 'disabled'],
])
/** Fatal only: what fails comes back as an exception, and the runtime's own lines are not JSON. */
const LOG_FATAL = 4
const ARENA_SHRINKAGE = 'memory.enable_memory_arena_shrinkage'
/** CUDA provider options; the binding takes the device id alone. */
const CUDA_HINTS = [
  'cudnn_conv_algo_search',
  'arena_extend_strategy',
  'do_copy_in_default_stream',
  'use_cuda_graph',
  'cudnn_conv_use_max_workspace',
]
const KNOWN = new Set([
  'intra_op_thread_count',
  'inter_op_thread_count',
  'execution_mode',
  'enable_mem_arena',
  'enable_mem_pattern',
])

/** @throws ServeError UNSUPPORTED naming the field. */
function refuseUnsupported(config: ModelConfig, field: string, why: string): never {
  throw new ServeError('UNSUPPORTED', `unable to load model '${config.name}', ${field}: ${why}`, {
    details: { field },
  })
}

function parameter(config: ModelConfig, key: string): string | undefined {
  return config.parameters[key]?.string_value
}

function threadCount(config: ModelConfig, key: string, fallback: number): number {
  const text = parameter(config, key)
  if (text === undefined) return fallback
  if (!/^\d{1,4}$/.test(text)) {
    refuseField(
      config.name,
      `parameters["${key}"]`,
      `got "${text}", want a number of threads, 0 for all`,
    )
  }
  return Number(text)
}

const FLAGS = { 1: true, true: true, 0: false, false: false } as const
const MODES = { 0: 'sequential', 1: 'parallel' } as const

function choose<T>(
  config: ModelConfig,
  key: string,
  o: { readonly choices: Readonly<Record<string, T>>; readonly fallback: T; readonly want: string },
): T {
  const text = parameter(config, key)
  if (text === undefined) return o.fallback
  const chosen = Object.entries(o.choices).find(([choice]) => choice === text)
  if (chosen !== undefined) return chosen[1]
  return refuseField(config.name, `parameters["${key}"]`, `got "${text}", want ${o.want}`)
}

function graphLevel(config: ModelConfig): Level {
  const level = config.optimization?.graph?.level ?? 0
  return (
    GRAPH_LEVELS.get(level) ??
    refuseField(config.name, 'optimization.graph.level', `got ${level}, want -1, 0, 1 or 2`)
  )
}

function sessionEntries(config: ModelConfig): Record<string, string> {
  const entries = Object.entries(config.parameters)
    .filter(([key]) => key.startsWith('session.'))
    .map(([key, value]) => [key, value.string_value] as const)
  return Object.fromEntries(entries)
}

function refuseAccelerators(config: ModelConfig): void {
  const accelerators = config.optimization?.execution_accelerators
  if (accelerators === undefined) return
  for (const list of ['gpu_execution_accelerator', 'cpu_execution_accelerator'] as const) {
    const [first] = accelerators[list]
    if (first === undefined) continue
    refuseUnsupported(
      config,
      `optimization.execution_accelerators.${list}`,
      `accelerator "${first.name}" is not offered, want none (KIND_GPU instances use CUDA)`,
    )
  }
}

function ineffectiveParameters(config: ModelConfig, usesGpu: boolean): string[] {
  const out: string[] = []
  for (const key of Object.keys(config.parameters)) {
    const field = `parameters["${key}"]`
    if (KNOWN.has(key) || key.startsWith('session.')) continue
    if (key === ARENA_SHRINKAGE) out.push(`${field}: the binding takes no run options`)
    else if (key === 'gpu_mem_limit' && usesGpu) {
      refuseUnsupported(config, field, 'the binding cannot bound GPU memory')
    } else if (CUDA_HINTS.includes(key) || key === 'gpu_mem_limit') {
      out.push(`${field}: the binding takes no CUDA options but the device`)
    } else out.push(`${field}: the onnxruntime engine knows no such parameter`)
  }
  return out
}

/** Fields of Triton's that are for other backends or for what the binding cannot do. Pinned memory says nothing: it is always on. */
const INEFFECTIVE = {
  'optimization.cuda.graphs': 'the binding has no CUDA graphs',
  'optimization.cuda.graph_spec': 'the binding has no CUDA graphs',
  'optimization.cuda.busy_wait_events': 'the binding has no events',
  'optimization.cuda.output_copy_stream': 'the binding has no copy streams',
  'optimization.priority': 'the runtime has no priorities of models',
  'optimization.eager_batching': 'a batch is formed when an instance is free',
  'optimization.gather_kernel_buffer_threshold': 'inputs are not gathered on a GPU',
  cc_model_filenames: 'one file serves every device',
  runtime: 'there is one runtime',
}

/**
 * Turns a model's parameters and optimization settings into session options (triton-semantics 6.2). intra-op threads
 * default to 1: parallelism comes from instances.
 *
 * @throws ServeError MODEL_LOAD_FAILED for a value out of range, UNSUPPORTED for what onnxruntime-node cannot do.
 */
export function compileSessionOptions(config: ModelConfig, usesGpu: boolean): CompiledOptions {
  refuseAccelerators(config)
  if ((config.model_operations?.op_library_filename.length ?? 0) > 0) {
    const field = 'model_operations.op_library_filename'
    refuseUnsupported(config, field, 'libraries of custom operators cannot be loaded')
  }
  const flag = { choices: FLAGS, fallback: true, want: '0 or 1' }
  const mode = { choices: MODES, fallback: MODES[0], want: '0 (sequential) or 1 (parallel)' }
  const session = {
    graphOptimizationLevel: graphLevel(config),
    intraOpNumThreads: threadCount(config, 'intra_op_thread_count', 1),
    interOpNumThreads: threadCount(config, 'inter_op_thread_count', 1),
    executionMode: choose(config, 'execution_mode', mode),
    enableCpuMemArena: choose(config, 'enable_mem_arena', flag),
    enableMemPattern: choose(config, 'enable_mem_pattern', flag),
    logSeverityLevel: LOG_FATAL,
    extra: sessionEntries(config),
  }
  const ineffective = ineffectiveParameters(config, usesGpu)
  return { session, ineffective: [...ineffective, ...findIneffective(config, INEFFECTIVE)] }
}

/** The execution providers of an instance; operators that CUDA lacks fall to the CPU, as ONNX Runtime does it. */
export function executionProviders(placement: Placement): OrtSessionOptions['executionProviders'] {
  if (placement.kind !== 'GPU') return [{ name: 'cpu' }]
  return [{ name: 'cuda', deviceId: placement.deviceId }, { name: 'cpu' }]
}
