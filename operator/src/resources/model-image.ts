import type { ModelSpec } from '@tutti/api'
import { engineOfFormat } from '@tutti/engines'
import { devicesOf } from './model-devices.ts'
import type { StepImages } from './step-settings.ts'

/** Prefix of the resource names of GPUs, parts of them, and time shares. */
const CUDA_DEVICES = 'nvidia.com/'

/** Chooses the image of `main` by the Model's format and devices. The Model's podTemplate may replace it later. */
export function modelImageOf(spec: ModelSpec, images: StepImages): string {
  const needsPython = engineOfFormat(spec.modelFormat.name).image === 'python'
  const image = needsPython ? images.pythonImage : images.image
  const hasCuda = devicesOf(spec)?.accelerator.startsWith(CUDA_DEVICES) === true
  if (!hasCuda) return image
  return (needsPython ? images.pythonCudaImage : images.cudaImage) ?? image
}
