import { readFileSync } from 'node:fs'

const DOCKERFILE = new URL('../../images/Dockerfile', import.meta.url)
const [, CUDA_BASE] = /^ARG CUDA_BASE=(.*)$/m.exec(readFileSync(DOCKERFILE, 'utf8'))
/** With CUDA's libraries below and its provider beside ONNX Runtime; ARGs of images/Dockerfile. */
const CUDA = { BASE: CUDA_BASE, ONNXRUNTIME: 'cuda12' }

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
  'step-cuda': { target: 'step', args: CUDA },
  'step-python-cuda': {
    target: 'step-python',
    // The packages come from PyPI, whose PyTorch for Linux on amd64 is the one with CUDA.
    args: {
      ...CUDA,
      APT_PACKAGES: '',
      PIP_PACKAGES: 'numpy pillow opencv-python-headless torch torchvision',
    },
  },
}

/** Images that are built unless others are named. */
export const DEFAULT_IMAGES = ['operator', 'router', 'step', 'step-python', 'samples']

/**
 * The name in an archive. It is whole: container runtimes complete `tutti/step:0.1.0` of a pod to docker.io/tutti/step:0.1.0.
 *
 * @param {{ tag: string, registry: string }} o
 */
export function referenceOf(name, { tag, registry }) {
  return `${registry}/tutti/${name}:${tag}`
}
