import t from 'tap'
import { isDeviceFault } from './device-faults.ts'

/** Texts as they stand in reports of users, and as CUDA's headers have them. */
const FAULTS = [
  'CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be asynchronously reported',
  "Failed to process the request(s) for model instance 'm_0', message: AcceleratorError: CUDA error: device-side assert triggered",
  'RuntimeError: CUDA error: uncorrectable ECC error encountered',
  'RuntimeError: CUDA error: unspecified launch failure',
  'RuntimeError: CUDA error: unknown error',
  'RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle, opa)`',
  'RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED',
  'Non-zero status code returned while running Memcpy node. CUDA failure 700: an illegal memory access was encountered ; GPU=0 ; hostname=n1 ; expr=cudaStreamSynchronize(stream_)',
  'CUDA failure 719: unspecified launch failure ; GPU=0 ; expr=cudaEventRecord(event)',
  'CUDA failure 999: unknown error ; GPU=0 ; expr=cudaSetDevice(info_.device_id)',
  'CUDA failure 100: no CUDA-capable device is detected ; GPU=-1',
  'cudaErrorIllegalAddress: an illegal memory access was encountered',
  'CUDA_ERROR_LAUNCH_FAILED',
  'CUDA error: misaligned address',
]

const OTHERS = [
  'CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB',
  'CUDA failure 2: out of memory ; GPU=0 ; hostname=n1 ; expr=cudaMalloc((void**)&p, size)',
  'CUDA error: invalid argument',
  'RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!',
  'an illegal instruction in the prompt',
  "ValueError: name 'cudart' is not defined",
]

await t.test('errors that leave a process without its device are told from others', async (t) => {
  for (const text of FAULTS) t.equal(isDeviceFault(text), true, text)
  for (const text of OTHERS) t.equal(isDeviceFault(text), false, text)
})
