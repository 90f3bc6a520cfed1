/**
 * ONNX Runtime's providers for CUDA 13, in the version of the npm package, and the libraries that they need, in the versions that
 * PyTorch asks for: an image with both has them once.
 */
const CUDA_PACKAGES = [
  'onnxruntime-gpu==1.30.0',
  'nvidia-cuda-runtime==13.2.86',
  'nvidia-cublas==13.4.1.3',
  'nvidia-cufft==12.2.0.57',
  'nvidia-curand==10.4.2.66',
  'nvidia-cuda-nvrtc==13.2.86',
  'nvidia-nvjitlink==13.5.37',
  'nvidia-cudnn-cu13==9.26.0.51',
].join(' ')

/**
 * The images: `target` and `args` are those of images/Dockerfile.
 *
 * @type {Readonly<Record<string, { target: string, args?: Record<string, string> }>>}
 */
export const IMAGES = {
  operator: { target: 'operator' },
  router: { target: 'router' },
  step: { target: 'step' },
  'step-python': { target: 'step-python' },
  samples: { target: 'samples' },
  'step-cuda': { target: 'step', args: { CUDA_PACKAGES } },
  'step-python-cuda': {
    target: 'step-python',
    // The packages come from PyPI, whose PyTorch for Linux on amd64 is the one with CUDA.
    args: {
      CUDA_PACKAGES,
      APT_PACKAGES: '',
      PIP_PACKAGES: 'numpy pillow opencv-python-headless torch==2.15.0 torchvision==0.29.2',
    },
  },
}

/** Images that are built unless others are named. */
export const DEFAULT_IMAGES = ['operator', 'router', 'step', 'step-python', 'samples']

/** Images of `--cuda`. */
export const CUDA_IMAGES = ['step-cuda', 'step-python-cuda']

/**
 * The name in an archive. It is whole: container runtimes complete `tutti/step:0.1.0` of a pod to docker.io/tutti/step:0.1.0.
 *
 * @param {{ tag: string, registry: string }} o
 */
export function referenceOf(name, { tag, registry }) {
  return `${registry}/tutti/${name}:${tag}`
}
