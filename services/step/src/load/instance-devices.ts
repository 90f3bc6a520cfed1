import type { Devices, Engine, FoundDevices } from '@tutti/backends'
import { ServeError } from '@tutti/errors'
import {
  type ModelConfig,
  type NormaliseOptions,
  noGpusAvailable,
  validateWhenLoaded,
} from '@tutti/model-config'

/*
 * The one place that decides where instances of a model execute. KIND_GPU and KIND_CPU say it themselves, and so does a group that
 * names GPUs. KIND_AUTO means the devices that the process was given, and the CPU where none was given: a model never falls back to
 * the CPU.
 */

/** Finds the defaults of instance groups on this machine. Looks for devices only if a group may want one. */
export async function toNormaliseOptions(
  config: ModelConfig,
  engine: Engine | undefined,
  devices: Devices,
): Promise<NormaliseOptions> {
  const isGiven = devices.accelerator !== undefined
  const autoKind = isGiven ? 'KIND_GPU' : 'KIND_CPU'
  if (!isGiven && !usesDevices(config)) return { autoKind }
  return { autoKind, gpuCount: (await findFor(engine, devices)).count }
}

/**
 * Refuses instance groups of a normalised configuration that want devices which are not there.
 *
 * @throws ServeError DEVICE_UNAVAILABLE that says what was found, CONFIG_INVALID for what else is wrong with inputs, outputs and
 * groups.
 */
export async function requireDevices(
  config: ModelConfig,
  engine: Engine | undefined,
  devices: Devices,
): Promise<void> {
  refuseUnplaced(config, engine, devices)
  if (!usesDevices(config)) return validateWhenLoaded(config, 0)
  const { count, found } = await findFor(engine, devices)
  const problem = engine?.cuda?.problem()
  const all = problem === undefined ? found : `${found}; ${problem}`
  const hint = count === 0 && engine?.cuda !== undefined ? `; want a node with NVIDIA's driver` : ''
  validateWhenLoaded(config, count, `${all}${hint}`)
  if (problem === undefined) return
  // There are devices, and the engine cannot use them.
  const group = config.instance_group.find(({ kind }) => kind === 'KIND_GPU')
  throw noGpusAvailable({ model: config.name, group: group?.name ?? '', found: all })
}

/** Tells whether devices that the process was given stay idle, because no group of the model wants them. */
export function leavesIdle(config: ModelConfig, devices: Devices): boolean {
  const isForCpu = config.instance_group.every(({ kind }) => kind === 'KIND_CPU')
  return devices.accelerator !== undefined && isForCpu
}

/**
 * Tells whether executions of a normalised configuration may use devices: some instances are on one, or the process was given some,
 * which the code of a Python model may use wherever its instances are.
 */
export function mayUseDevices(config: ModelConfig, devices: Devices): boolean {
  if (devices.accelerator !== undefined) return true
  return config.instance_group.some(({ kind }) => kind !== 'KIND_CPU')
}

function usesDevices(config: ModelConfig): boolean {
  return config.instance_group.some(({ kind }) => kind === 'KIND_GPU')
}

function findFor(engine: Engine | undefined, devices: Devices): Promise<FoundDevices> {
  return engine?.cuda === undefined ? devices.any() : devices.cuda()
}

/** Refuses KIND_MODEL where the model cannot choose its device: it would execute on the CPU beside the devices. */
function refuseUnplaced(config: ModelConfig, engine: Engine | undefined, devices: Devices): void {
  if (devices.accelerator === undefined || engine?.cuda?.modelChooses !== false) return
  const group = config.instance_group.find(({ kind }) => kind === 'KIND_MODEL')
  if (group === undefined) return
  const { resourceName, count } = devices.accelerator
  throw new ServeError(
    'UNSUPPORTED',
    `instance group ${group.name} of model ${config.name} has kind KIND_MODEL with accelerator ${resourceName}=${count}, and backend '${config.backend}' lets no model choose, want KIND_GPU, or KIND_CPU to leave the devices idle`,
    { details: { field: 'instance_group.kind' } },
  )
}
