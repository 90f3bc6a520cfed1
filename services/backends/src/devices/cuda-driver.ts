import { ServeError } from '@tutti/errors'
import { callNative, loadLibrary, type NativeLibrary } from './native-library.ts'

/** The devices that NVIDIA's driver offers this process, CUDA_VISIBLE_DEVICES, MIG and the container's share considered. */
export type CudaDriver =
  | { readonly count: number }
  /** There is none to ask, or it offers nothing. */
  | { readonly count: 0; readonly problem: string }

/** A name that the loader finds. */
export const CUDA_LIBRARY = 'libcuda.so.1'
const SUCCESS = 0

/**
 * Asks the driver's own library, which says what every user of CUDA in this process will find. It makes no context on a
 * device, and processes that are started later have nothing of it.
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
 * Loads the driver's library, with a check of the statuses that its functions return.
 *
 * @param name - a name that the loader finds, or a path.
 * @throws Error of koffi if there is none; the check ServeError DEVICE_UNAVAILABLE with CUDA's words.
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
