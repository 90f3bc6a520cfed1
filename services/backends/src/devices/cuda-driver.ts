import { ServeError } from '@tutti/errors'
import { callNative, loadLibrary, type NativeLibrary } from './native-library.ts'

/** Devices that NVIDIA's driver offers this process, after CUDA_VISIBLE_DEVICES, MIG and the share of the container. */
export type CudaDriver =
  | { readonly count: number }
  /** No driver was found, or it offers no device. */
  | { readonly count: 0; readonly problem: string }

/** Name of the CUDA driver's library, which the dynamic loader finds. */
export const CUDA_LIBRARY = 'libcuda.so.1'
const SUCCESS = 0

/**
 * Asks the driver's library how many devices it offers, which every user of CUDA in this process will find too. It makes no
 * context on a device and does not affect processes that are started later. Never rejects: an error becomes `problem`.
 *
 * @param library - a name that the loader finds, or a path.
 */
export async function askCudaDriver(library = CUDA_LIBRARY): Promise<CudaDriver> {
  try {
    const { library: driver, check } = loadCudaDriver(library)
    check('cuInit', await callNative(driver.func('int cuInit(unsigned int)'), 0))
    const count = [0]
    check(
      'cuDeviceGetCount',
      await callNative(driver.func('int cuDeviceGetCount(_Out_ int*)'), count),
    )
    return { count: count[0] ?? 0 }
  } catch (error) {
    const { message } = ServeError.from(error)
    // The error of koffi for a library that is absent names no library.
    return { count: 0, problem: `${library}: ${message}` }
  }
}

/**
 * Loads the driver's library, with a function that checks the statuses of its calls.
 *
 * @param name - a name that the loader finds, or a path.
 * @throws Error of koffi if there is no library. `check` throws ServeError DEVICE_UNAVAILABLE with CUDA's words.
 */
export function loadCudaDriver(name: string): {
  readonly library: NativeLibrary
  readonly check: (what: string, code: number) => void
} {
  const library = loadLibrary(name)
  const describe = library.func('int cuGetErrorString(int, _Out_ const char**)')
  const check = (what: string, code: number): void => {
    if (code === SUCCESS) return
    const text: (string | null)[] = [null]
    describe(code, text)
    const message = `${what} says ${code} (${text[0] ?? 'an unknown error'})`
    throw new ServeError('DEVICE_UNAVAILABLE', message, { code: 'INTERNAL' })
  }
  return { library, check }
}
