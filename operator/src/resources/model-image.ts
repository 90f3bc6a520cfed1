import { engineOfFormat } from '@tutti/engines'
import { devicesOf } from './model-devices.ts'
import type { PodGroup } from './pod-group.ts'

/** Prefix of the resource names of GPUs, parts of them, and time shares. */
const CUDA_DEVICES = 'nvidia.com/'

/** Chooses the image of `main`, which can run all Models of a group on its devices. The host's podTemplate may replace it later. */
export function imageOf(group: PodGroup): string {
  const { settings: images, models } = group
  const needsPython = models.some(
    ({ spec }) => engineOfFormat(spec.modelFormat.name).image === 'python',
  )
  const image = needsPython ? images.pythonImage : images.image
  const hasCuda = devicesOf(group)?.accelerator.startsWith(CUDA_DEVICES) === true
  if (!hasCuda) return image
  return (needsPython ? images.pythonCudaImage : images.cudaImage) ?? image
}
