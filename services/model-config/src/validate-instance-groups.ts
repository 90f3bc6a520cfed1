import { type Reason, ServeError } from '@tutti/errors'
import type { InstanceGroup, ModelConfig } from './model-config.ts'

/** Triton's default `--min-supported-compute-capability`, as it prints it. */
const MIN_COMPUTE_CAPABILITY = '6.000000'
const TENSORRT_PLATFORM = 'tensorrt_plan'

interface Fault {
  readonly reason: Reason
  readonly text: string
}

function invalid(text: string): Fault {
  return { reason: 'CONFIG_INVALID', text }
}

function gpuFault(group: InstanceGroup, gpuCount: number | undefined): Fault | undefined {
  if (gpuCount === undefined) return undefined
  if (group.gpus.length === 0) {
    return gpuCount === 0
      ? { reason: 'DEVICE_UNAVAILABLE', text: 'has kind KIND_GPU but no GPUs are available' }
      : invalid('has kind KIND_GPU but specifies no GPUs')
  }
  const absent = group.gpus.find((id) => id < 0 || id >= gpuCount)
  if (absent === undefined) return undefined
  const present = Array.from({ length: gpuCount }, (_, id) => id).join(', ')
  return {
    reason: 'DEVICE_UNAVAILABLE',
    text: `specifies invalid or unsupported gpu id ${absent}. GPUs with at least the minimum required CUDA compute compatibility of ${MIN_COMPUTE_CAPABILITY} are: ${present}`,
  }
}

function kindFault(group: InstanceGroup, gpuCount: number | undefined): Fault | undefined {
  if (group.kind === 'KIND_GPU') return gpuFault(group, gpuCount)
  if (group.kind === 'KIND_AUTO') return invalid('has unexpected kind KIND_AUTO')
  return group.gpus.length === 0
    ? undefined
    : invalid(`has kind ${group.kind} but specifies one or more GPUs`)
}

function profileFault(group: InstanceGroup, platform: string): Fault | undefined {
  if (group.profile.length === 0) return undefined
  if (platform !== TENSORRT_PLATFORM) {
    // Without a blank before "specifies", as Triton prints it.
    return invalid(
      `and platform ${platform}specifies profile field which is only supported for TensorRT models`,
    )
  }
  const bad = group.profile.find((profile) => !/^\s*\+?[0-9]/.test(profile))
  return bad === undefined
    ? undefined
    : invalid(
        `and platform ${platform} specifies invalid profile ${bad}. The field should contain the string representation of a non-negative integer.`,
      )
}

/**
 * Checks the instance groups of a normalised config; an ensemble has none.
 *
 * @param gpuCount - visible GPUs; undefined if unknown, which leaves out what depends on it.
 * @param found - how the number is known, for the text of DEVICE_UNAVAILABLE.
 * @throws ServeError DEVICE_UNAVAILABLE if a GPU is asked for that is not there, CONFIG_INVALID otherwise.
 */
export function validateInstanceGroups(
  config: ModelConfig,
  gpuCount: number | undefined,
  found?: string,
): void {
  if (config.ensemble_scheduling !== undefined) return
  const details = { field: 'instance_group' }
  if (config.instance_group.length === 0) {
    throw new ServeError(
      'CONFIG_INVALID',
      `must specify one or more 'instance group's for ${config.name}`,
      { details },
    )
  }
  for (const group of config.instance_group) {
    const fault = kindFault(group, gpuCount) ?? profileFault(group, config.platform)
    if (fault === undefined) continue
    const isAbsence = fault.reason === 'DEVICE_UNAVAILABLE' && found !== undefined
    const known = isAbsence ? ` (${found})` : ''
    throw new ServeError(
      fault.reason,
      `instance group ${group.name} of model ${config.name} ${fault.text}${known}`,
      { details },
    )
  }
}
