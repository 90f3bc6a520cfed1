import { ServeError } from '@tutti/errors'
import type { InstanceGroup, ModelConfig } from '../model/model-config.ts'

/** Triton's default `--min-supported-compute-capability`, as it prints it. */
const MIN_COMPUTE_CAPABILITY = '6.000000'
const TENSORRT_PLATFORM = 'tensorrt_plan'
const GROUPS = 'instance_group'

/** An instance group that asks for GPUs which are not there. */
export interface WithoutGpus {
  readonly model: string
  readonly group: string
  /** Source of the number of GPUs, for the text of the error. */
  readonly found?: string | undefined
}

/** Makes the ServeError DEVICE_UNAVAILABLE for a group of KIND_GPU if there are no GPUs, or none that the engine can use. */
export function noGpusAvailable(without: WithoutGpus): ServeError {
  return deviceError(without, 'has kind KIND_GPU but no GPUs are available', `${GROUPS}.kind`)
}

function deviceError({ model, group, found }: WithoutGpus, text: string, field: string) {
  const known = found === undefined ? '' : ` (${found})`
  const message = `instance group ${group} of model ${model} ${text}${known}`
  return new ServeError('DEVICE_UNAVAILABLE', message, { details: { field } })
}

/** @throws ServeError DEVICE_UNAVAILABLE for a GPU that is not there. */
function requireGpus({ gpus }: InstanceGroup, gpuCount: number, without: WithoutGpus): void {
  if (gpus.length === 0 && gpuCount === 0) throw noGpusAvailable(without)
  const absent = gpus.find((id) => id < 0 || id >= gpuCount)
  if (absent === undefined) return
  const present = Array.from({ length: gpuCount }, (_, id) => id).join(', ')
  const text = `specifies invalid or unsupported gpu id ${absent}. GPUs with at least the minimum required CUDA compute compatibility of ${MIN_COMPUTE_CAPABILITY} are: ${present}`
  throw deviceError(without, text, GROUPS)
}

function groupFault(group: InstanceGroup, platform: string, gpuCount: number | undefined) {
  const { kind, gpus, profile } = group
  if (kind === 'KIND_AUTO') return 'has unexpected kind KIND_AUTO'
  if (kind !== 'KIND_GPU' && gpus.length > 0) {
    return `has kind ${kind} but specifies one or more GPUs`
  }
  if (kind === 'KIND_GPU' && gpuCount !== undefined && gpus.length === 0) {
    return 'has kind KIND_GPU but specifies no GPUs'
  }
  if (profile.length === 0 || platform === TENSORRT_PLATFORM) return undefined
  // Without a blank before "specifies", as Triton prints it.
  return `and platform ${platform}specifies profile field which is only supported for TensorRT models`
}

/**
 * Checks the instance groups of a normalised configuration. An ensemble has none.
 *
 * @param gpuCount - visible GPUs; undefined if unknown, which leaves out the checks that need the number.
 * @param found - the source of that number, for the text of DEVICE_UNAVAILABLE.
 * @throws ServeError DEVICE_UNAVAILABLE if a group names a GPU that does not exist; CONFIG_INVALID for every other fault.
 */
export function validateInstanceGroups(
  config: ModelConfig,
  gpuCount: number | undefined,
  found?: string,
): void {
  const { name: model, platform, instance_group: groups } = config
  if (config.ensemble_scheduling !== undefined) return
  const details = { field: GROUPS }
  if (groups.length === 0) {
    const text = `must specify one or more 'instance group's for ${model}`
    throw new ServeError('CONFIG_INVALID', text, { details })
  }
  for (const group of groups) {
    if (group.kind === 'KIND_GPU' && gpuCount !== undefined) {
      requireGpus(group, gpuCount, { model, group: group.name, found })
    }
    const fault = groupFault(group, platform, gpuCount)
    if (fault === undefined) continue
    const text = `instance group ${group.name} of model ${model} ${fault}`
    throw new ServeError('CONFIG_INVALID', text, { details })
  }
}
