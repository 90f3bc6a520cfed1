import { type Reason, ServeError } from '@tutti/errors'
import type { InstanceGroup, ModelConfig } from './model-config.ts'

/** Triton's default `--min-supported-compute-capability`, as it prints it. */
const MIN_COMPUTE_CAPABILITY = '6.000000'
const TENSORRT_PLATFORM = 'tensorrt_plan'

const GROUPS = 'instance_group'

interface Fault {
  readonly reason: Reason
  readonly text: string
  /** What is refused, where that is not the group as a whole. */
  readonly field?: string
}

const NO_GPUS: Fault = {
  reason: 'DEVICE_UNAVAILABLE',
  text: 'has kind KIND_GPU but no GPUs are available',
  field: `${GROUPS}.kind`,
}

function invalid(text: string): Fault {
  return { reason: 'CONFIG_INVALID', text }
}

function gpuFault(group: InstanceGroup, gpuCount: number | undefined): Fault | undefined {
  if (gpuCount === undefined) return undefined
  if (group.gpus.length === 0) {
    return gpuCount === 0 ? NO_GPUS : invalid('has kind KIND_GPU but specifies no GPUs')
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
  if (group.profile.length === 0 || platform === TENSORRT_PLATFORM) return undefined
  // Without a blank before "specifies", as Triton prints it.
  return invalid(
    `and platform ${platform}specifies profile field which is only supported for TensorRT models`,
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
  if (config.instance_group.length === 0) {
    throw new ServeError(
      'CONFIG_INVALID',
      `must specify one or more 'instance group's for ${config.name}`,
      { details: { field: GROUPS } },
    )
  }
  for (const group of config.instance_group) {
    const fault = kindFault(group, gpuCount) ?? profileFault(group, config.platform)
    if (fault !== undefined) throw toError({ model: config.name, group: group.name, found }, fault)
  }
}

/** A group of a model that wants GPUs. */
export interface WithoutGpus {
  readonly model: string
  readonly group: string
  /** How it is known that there are none. */
  readonly found?: string | undefined
}

/** DEVICE_UNAVAILABLE of a group of KIND_GPU for which there are no GPUs, or none that its engine can use. */
export function noGpusAvailable(without: WithoutGpus): ServeError {
  return toError(without, NO_GPUS)
}

function toError({ model, group, found }: WithoutGpus, fault: Fault): ServeError {
  const { reason, text, field = GROUPS } = fault
  const known = reason === 'DEVICE_UNAVAILABLE' && found !== undefined ? ` (${found})` : ''
  const message = `instance group ${group} of model ${model} ${text}${known}`
  return new ServeError(reason, message, { details: { field } })
}
