import type { ModelSpec } from '@tutti/api'
import { engineOfFormat } from '@tutti/engines'
import { devicesOf } from './model-devices.ts'
import type { StepImages } from './step-settings.ts'

/** Prefix of the resource names of GPUs, parts of them, and time shares. */
const CUDA_DEVICES = 'nvidia.com/'

/** The image of `main`, unless the Model's podTemplate names one: that of its format, and of its devices where there is one for them. */
export function modelImageOf(spec: ModelSpec, images: StepImages): string {
  const needsPython = engineOfFormat(spec.modelFormat.name).image === 'python'
  const image = needsPython ? images.pythonImage : images.image
  const hasCuda = Object.keys(devicesOf(spec) ?? {}).some((name) => name.startsWith(CUDA_DEVICES))
  if (!hasCuda) return image
  return (needsPython ? images.pythonCudaImage : images.cudaImage) ?? image
}
