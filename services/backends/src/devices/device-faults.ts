/** Libraries of CUDA whose name stands in the texts of PyTorch, ONNX Runtime, CuPy and TensorRT. */
const OF_CUDA = /cuda|cudnn|cublas|cufft|curand|cusparse|nccl/i

/**
 * Errors that leave the context of a process on its device in a state from which it does not recover: of them CUDA's documentation
 * says that the process must be ended and started anew, or that the device itself is at fault. The texts are those of
 * `cudaGetErrorString`, the names those of CUDA's headers; `*_EXECUTION_FAILED` is what cuBLAS and cuDNN make of them.
 */
const STICKY = [
  'illegal memory access',
  'illegal address',
  'IllegalAddress',
  'ILLEGAL_ADDRESS',
  'illegal instruction',
  'invalid program counter',
  'misaligned address',
  'operation not supported on global/shared address space',
  'hardware stack error',
  'unspecified launch failure',
  'LaunchFailure',
  'LAUNCH_FAILED',
  'launch timed out and was terminated',
  'device-side assert',
  'uncorrectable ECC error',
  'ECCUncorrectable',
  'ECC_UNCORRECTABLE',
  'uncorrectable NVLink error',
  'no CUDA-capable device',
  'busy or unavailable',
  'is lost',
  'fallen off the bus',
  'error: unknown error',
  'failure 999',
  'EXECUTION_FAILED',
] as const

const OF_DEVICE = new RegExp(STICKY.join('|'), 'i')

/**
 * Tells whether the text of an error names a fault of a CUDA device that stays, so that further executions of the process fail
 * too. Errors of one execution, such as too little memory, do not count.
 */
export function isDeviceFault(text: string): boolean {
  return OF_CUDA.test(text) && OF_DEVICE.test(text)
}
