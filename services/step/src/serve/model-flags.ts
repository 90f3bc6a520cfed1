import { Accelerator, DEFAULT_DEVICE } from '@tutti/api'
import {
  CustomMetrics,
  createDevices,
  createEngines,
  type Devices,
  type Engines,
  type EnginesOptions,
  GpuMetrics,
} from '@tutti/backends'
import {
  type FlagTable,
  type FlagValues,
  flagRefusal,
  type Logger,
  type StatusLine,
  systemClock,
  TransferProgress,
} from '@tutti/chassis'
import {
  type CloudIdentity,
  isRemote,
  ModelRepository,
  parseRepositoryUri,
  RepositoryMirror,
  type ScanOptions,
} from '@tutti/repository'
import type { ServerMetrics } from '@tutti/telemetry'
import { LIMITER_FLAGS, openLimiter } from '../limiter/limiter-flags.ts'
import { StepEvents } from '../log-events.ts'
import { type BackendConfig, readBackendConfig } from './backend-config.ts'
import { HOST_POLICY_FLAGS, readHostPolicies } from './host-policies.ts'

/** The flags of every executable that loads models: tritonserver's names and defaults where it has the flag. */
export const MODEL_FLAGS = {
  'model-repository': {
    type: 'string',
    path: 'folder',
    repeatable: true,
    aliases: ['model-store'],
    description:
      'Folder, or s3://, gs:// or as:// address, that holds models. Repeat the flag for more.',
  },
  'strict-readiness': {
    type: 'bool',
    default: true,
    description:
      'Ready only if every model version to be loaded is ready. False: ready as soon as the server serves.',
  },
  'exit-on-error': {
    type: 'bool',
    default: false,
    description: 'Exit at the start if a model cannot be loaded. tritonserver defaults to true.',
  },
  'disable-auto-complete-config': {
    type: 'bool',
    default: false,
    description: 'Require a complete config.pbtxt, and complete nothing from the model file.',
  },
  'model-config-name': {
    type: 'string',
    description: 'Read configs/NAME.pbtxt of a model instead of its config.pbtxt, if it exists.',
  },
  'model-load-thread-count': {
    type: 'int',
    min: 1,
    max: 64,
    default: 4,
    description: 'Models that are loaded at the same time.',
  },
  'backend-config': {
    type: 'string',
    repeatable: true,
    description:
      'BACKEND,SETTING=VALUE, such as onnxruntime,default-max-batch-size=8. docs/engines.md lists the settings. Repeat the flag for more.',
  },
  'backend-directory': {
    type: 'string',
    path: 'folder',
    default: '/opt/tritonserver/backends',
    description:
      'Folder of python-based backends: NAME/model.py serves the models of backend NAME.',
  },
  accelerator: {
    type: 'string',
    description:
      'RESOURCE=COUNT, such as nvidia.com/gpu=1: the devices that this process may use; nvidia.com/gpu=all for as many as there are. KIND_AUTO executes on them, and without the flag on the CPU.',
  },
  'max-queue-size': {
    type: 'int',
    min: 1,
    max: 1_000_000,
    default: 4096,
    unit: 'requests',
    description:
      "Length of a model's queue, if its config sets none. Further requests fail at once.",
  },
  ...HOST_POLICY_FLAGS,
  ...LIMITER_FLAGS,
} as const satisfies FlagTable

export type ModelFlags = FlagValues<typeof MODEL_FLAGS>

type Environment = Readonly<Record<string, string | undefined>>

/** Models outside of repositories, and overrides of configurations. */
export type OtherModels = Pick<ScanOptions, 'directories' | 'overrides'>

/**
 * Checks the flags that can be checked before anything starts.
 *
 * @param o.hasOthers - true if models are given by other means than repositories.
 * @throws ServeError FLAG_INVALID if the flags name no repository, or if a backend setting or a host policy is invalid.
 */
export function checkModelFlags(
  flags: Pick<ModelFlags, 'model-repository' | 'backend-config' | 'host-policy'>,
  o: { readonly hasOthers?: boolean } = {},
): void {
  readBackendConfig(flags['backend-config'])
  readHostPolicies(flags)
  if (flags['model-repository'].length > 0 || o.hasOthers === true) return
  throw flagRefusal('--model-repository', 'got none, want at least one folder')
}

/**
 * Converts the flags to the settings of a step.
 *
 * @param env - environment of the process, for the values that a device plugin has set there.
 * @throws ServeError FLAG_INVALID for `--accelerator`, `--rate-limit-resource` and `--host-policy`.
 */
export function toStepSettings(flags: ModelFlags, env: Environment | undefined) {
  return {
    devices: openDevices(flags.accelerator, env),
    autoComplete: !flags['disable-auto-complete-config'],
    loadParallelism: flags['model-load-thread-count'],
    maxQueuedRequests: flags['max-queue-size'],
    limiter: openLimiter(flags),
    hostPolicies: readHostPolicies(flags),
  }
}

/**
 * Opens the repositories that the flags name. The caller closes them.
 *
 * @param o.env - environment of the process, for the credentials of repositories in buckets.
 * @param o.identity - the clouds' libraries for credentials of gs:// and as://.
 * @throws ServeError FLAG_INVALID for an address that is invalid.
 */
export function openRepository(
  flags: Pick<ModelFlags, 'model-repository' | 'model-config-name'>,
  {
    env,
    log,
    statusLine,
    identity,
    ...others
  }: OtherModels & {
    readonly identity?: CloudIdentity | undefined
    readonly statusLine?: StatusLine | undefined
    readonly env: Environment
    readonly log: Logger
    readonly isNamespaced?: boolean
  },
): ModelRepository {
  const configName = flags['model-config-name']
  const places = [...new Set(flags['model-repository'])]
  const progress = new TransferProgress({ statusLine, log, clock: systemClock })
  const openTransfer = (uri: string) => progress.open(uri)
  return new ModelRepository({
    paths: places.filter((place) => !isRemote(place)),
    mirrors: places
      .filter(isRemote)
      .map(
        (uri) =>
          new RepositoryMirror(parseRepositoryUri(uri), { env, log, openTransfer, identity }),
      ),
    ...others,
    ...(configName !== undefined && { configName }),
  })
}

/** All devices that CUDA's driver offers: what gives them, such as a pod's claims, has bounded them already. */
const ALL_DEVICES = {
  text: `${DEFAULT_DEVICE}=all`,
  accelerator: { resourceName: DEFAULT_DEVICE, count: 'all' },
} as const

/**
 * Finds the devices of a process from `--accelerator=RESOURCE=COUNT`, or `nvidia.com/gpu=all`, and its environment.
 *
 * @param text - the flag's value.
 * @throws ServeError FLAG_INVALID that names the value.
 */
export function openDevices(text: string | undefined, env?: Environment): Devices {
  if (text === undefined) return createDevices({ env })
  if (text === ALL_DEVICES.text) return createDevices({ env, accelerator: ALL_DEVICES.accelerator })
  const [, resourceName = '', number = '1'] = /^([^=]*)(?:=(\d{1,4}))?$/.exec(text) ?? []
  const accelerator = { resourceName, count: Number(number) }
  if (Accelerator.safeParse(accelerator).success) return createDevices({ env, accelerator })
  const want =
    'want DOMAIN/NAME=COUNT, e.g. nvidia.com/gpu=1, with a count of 1 to 64; or nvidia.com/gpu=all'
  throw flagRefusal('--accelerator', `got "${text}", ${want}`)
}

/** Makes the engines of a server. Metrics of models and GPUs are added to the server's own. */
export function openEngines(
  o: Omit<EnginesOptions, 'metrics'> & {
    readonly metrics: ServerMetrics
    readonly log: Logger
    readonly ineffective: BackendConfig['ineffective']
    /** True, or absent, to add the metrics of GPUs. */
    readonly gpuMetrics?: boolean | undefined
  },
): Engines {
  const events = new StepEvents(o.log)
  for (const setting of o.ineffective) events.backendSettingIneffective(setting)
  const models = new CustomMetrics()
  o.metrics.addFamilies(() => models.read())
  if (o.gpuMetrics !== false) {
    const gpus = new GpuMetrics()
    o.metrics.addFamilies(() => gpus.read())
  }
  return createEngines({ ...o, metrics: models })
}
