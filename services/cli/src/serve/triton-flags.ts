import { resolve } from 'node:path'
import { type FlagTable, type FlagValues, flagRefusal } from '@tutti/chassis'
import type { ModelFlags } from '@tutti/step'
import type { ManifestFlags } from './manifest-flags.ts'

/** Accepted as tritonserver accepts them; a line of the log says what happens instead. */
const INT = { type: 'int', isIgnored: true } as const
const TEXT = { type: 'string', repeatable: true, isIgnored: true } as const
const BOOL = { type: 'bool', isIgnored: true } as const

const NO_POOL = 'No effect: memory is taken as requests need it, up to --max-inflight-bytes.'
const NO_THREADS = 'No effect: one thread serves all connections, models have threads of their own.'
const NO_PINGS = 'No effect: the server pings a connection as long as it lasts.'
const NO_SAGEMAKER = 'No effect: SageMaker endpoints are not offered.'
const NO_VERTEX = 'No effect: Vertex AI endpoints are not offered.'
const NO_LIBRARIES = 'No effect: nothing is loaded from shared libraries.'

/** Flags of tritonserver 2.51 that have no effect here, or only values that change nothing. */
export const TRITON_FLAGS = {
  'strict-model-config': {
    type: 'bool',
    description: 'Deprecated name of --disable-auto-complete-config.',
  },
  'model-namespacing': {
    type: 'bool',
    default: false,
    description:
      'Let several --model-repository have models of the same name. A model and an ensemble find those of their own repository first.',
  },
  'model-load-retry-count': {
    ...INT,
    description:
      'No effect: a load that fails is reported at once; a poll or a client loads again.',
  },
  'enable-peer-access': { ...BOOL, description: 'No effect: GPUs exchange no tensors directly.' },
  'reuse-http-port': { ...BOOL, description: 'No effect: a port belongs to one server.' },
  'reuse-grpc-port': { ...BOOL, description: 'No effect: a port belongs to one server.' },
  'http-thread-count': { ...INT, description: NO_THREADS },
  'grpc-infer-thread-count': { ...INT, description: NO_THREADS },
  'grpc-infer-allocation-pool-size': { ...INT, description: NO_POOL },
  'grpc-max-response-pool-size': { ...INT, description: NO_POOL },
  'grpc-http2-max-pings-without-data': { ...INT, description: NO_PINGS },
  'allow-sagemaker': {
    type: 'bool',
    default: false,
    description: 'Only false: SageMaker endpoints are not offered.',
  },
  'sagemaker-port': { ...INT, description: NO_SAGEMAKER },
  'sagemaker-safe-port-range': { ...TEXT, description: NO_SAGEMAKER },
  'sagemaker-thread-count': { ...INT, description: NO_SAGEMAKER },
  'allow-vertex-ai': {
    type: 'bool',
    default: false,
    description: 'Only false: Vertex AI endpoints are not offered.',
  },
  'vertex-ai-port': { ...INT, description: NO_VERTEX },
  'vertex-ai-thread-count': { ...INT, description: NO_VERTEX },
  'vertex-ai-default-model': { ...TEXT, description: NO_VERTEX },
  'allow-gpu-metrics': {
    type: 'bool',
    default: true,
    description: 'Whether the metrics have those of GPUs, where there are some.',
  },
  'allow-cpu-metrics': {
    ...BOOL,
    description: 'No effect: metrics of the host cost nothing and are always there.',
  },
  'metrics-interval-ms': {
    ...TEXT,
    description: 'No effect: metrics are read when they are asked for.',
  },
  'repoagent-directory': { ...TEXT, description: NO_LIBRARIES },
  'cache-directory': { ...TEXT, description: NO_LIBRARIES },
  'pinned-memory-pool-byte-size': { ...INT, description: NO_POOL },
  'cuda-memory-pool-byte-size': { ...TEXT, description: NO_POOL },
  'cuda-virtual-address-size': { ...TEXT, description: NO_POOL },
  'min-supported-compute-capability': {
    ...TEXT,
    description: 'No effect: --accelerator names the devices that are used.',
  },
  'buffer-manager-thread-count': { ...INT, description: NO_THREADS },
  'model-load-gpu-limit': {
    ...TEXT,
    description: 'No effect: a load fails when its device has no memory left.',
  },
} as const satisfies FlagTable

export type TritonFlags = FlagValues<typeof TRITON_FLAGS>

const NOT_OFFERED = ['allow-sagemaker', 'allow-vertex-ai'] as const

/** Refuses endpoints that are not offered, and flags that contradict `--model-namespacing`. @throws ServeError FLAG_INVALID */
export function checkTritonFlags(
  flags: TritonFlags & Pick<ManifestFlags, 'filename'> & Pick<ModelFlags, 'model-repository'>,
): void {
  for (const name of NOT_OFFERED) {
    if (flags[name]) throw flagRefusal(`--${name}`, 'got true, want false: it is not offered')
  }
  if (!flags['model-namespacing']) return
  if (flags.filename.length > 0) {
    const why = 'a model of a manifest is in no repository'
    throw flagRefusal('--model-namespacing', `got true with --filename, want false: ${why}`)
  }
  const excess = flags['model-repository'].find((place) => resolve(place).includes('::'))
  if (excess === undefined) return
  const want = 'want no "::" with --model-namespacing'
  throw flagRefusal('--model-repository', `got "${excess}", ${want}`)
}
