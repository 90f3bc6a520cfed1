const MB = 1_000_000

/** With CUDA's libraries below and its provider beside ONNX Runtime; ARGs of images/Dockerfile. */
const CUDA = { ROOT: 'cuda', ONNXRUNTIME: 'cuda12' }

/**
 * The images: `target` and `args` are those of images/Dockerfile, `limitBytes` is the most that may be added above the base.
 *
 * @type {Readonly<Record<string, { target: string, args?: Record<string, string>, limitBytes?: number, isOnRequest?: boolean }>>}
 */
export const IMAGES = {
  operator: { target: 'operator', limitBytes: 100 * MB },
  router: { target: 'router', limitBytes: 100 * MB },
  step: { target: 'step', limitBytes: 150 * MB },
  'step-python': { target: 'step-python' },
  'step-cuda': { target: 'step', args: CUDA, isOnRequest: true },
  'step-python-cuda': {
    target: 'step-python',
    // Of PyPI, whose PyTorch for Linux on amd64 is the one with CUDA.
    args: {
      ...CUDA,
      APT_PACKAGES: '',
      PIP_PACKAGES: 'numpy pillow opencv-python-headless torch torchvision',
    },
    isOnRequest: true,
  },
}

/** What is built unless images are named. */
export const USUAL_IMAGES = Object.keys(IMAGES).filter((name) => !IMAGES[name].isOnRequest)

/**
 * The name in an archive. It is whole: container runtimes complete `tutti/step:0.1.0` of a pod to docker.io/tutti/step:0.1.0.
 *
 * @param {{ tag: string, registry: string }} o
 */
export function referenceOf(name, { tag, registry }) {
  return `${registry}/tutti/${name}:${tag}`
}

/**
 * Judges what an image adds above its base.
 *
 * @returns {string | undefined} what is wrong.
 */
export function judgeSize(name, addedBytes) {
  const { limitBytes } = IMAGES[name]
  if (limitBytes === undefined || addedBytes <= limitBytes) return undefined
  return `${name} adds ${toMegabytes(addedBytes)} MB above its base; at most ${toMegabytes(limitBytes)} MB are wanted.`
}

export function toMegabytes(bytes) {
  return (bytes / MB).toFixed(1)
}
